/** The catalogue of frequency oracles: from the name and the parameters in a campaign file to the mechanism. */

import { FormatError } from "../errors.js";
import { probabilityThreshold, spendingFlip, spendingThreshold, symmetricThreshold, WORD_VALUES } from "../maths/thresholds.js";
import { designNamed, weightedDesign, type Design } from "./design.js";
import { affine, hadamard, identity, nested, pool, primeOf, type Encoder } from "./encoders.js";
import { mechanism, type Mechanism } from "./mechanism.js";
import { interval, randomisedResponse, subset, unary, type Responder } from "./responders.js";

const MOST_ITEMS = 2 ** 31 - 1;
const MOST_TALLY_CELLS = 2 ** 28;
/** An integer beyond 2**53 - 1 travels as the text of its digits. */
const LARGE = /^[1-9]\d{15,19}$/;

/** The section of a campaign file: a mechanism with complete parameters. */
export interface MechanismTerms {
  readonly name: string;
  readonly epsilon: number;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What a mechanism is built from; integers are read by their letter. */
interface Given {
  readonly epsilon: number;
  /** The number of items; undefined in the open domain. */
  readonly domain: number | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly designs: readonly Design[];
}

interface Line {
  readonly takes: readonly string[];
  readonly optional?: readonly string[];
  readonly open?: true;
  readonly build: (given: Given) => Mechanism;
}

const POOL = ["k", "m", "seed"];

const overItems = (responder: (epsilon: number, cells: bigint, given: Given) => Responder) => (given: Given): Mechanism =>
  built(given, identity(BigInt(given.domain ?? 0)), (cells) => responder(given.epsilon, cells, given));

const overPool = (responder: (cells: bigint, given: Given) => Responder) => (given: Given): Mechanism =>
  mechanism(undefined, poolOf(given), responder(integer(given, "m"), given));

const overSigns = (blocks: (given: Given) => bigint) => (given: Given): Mechanism =>
  built(given, hadamard(BigInt(given.domain ?? 0), blocks(given)), spendingOne(given.epsilon));

const symmetric = (epsilon: number, cells: bigint): Responder => {
  const keep = symmetricThreshold(epsilon);
  return unary(cells, keep, WORD_VALUES - keep);
};

const signs: Line = { takes: [], build: overSigns(() => 1n) };
const sketch: Line = { takes: POOL, open: true, build: overPool((cells, { epsilon }) => symmetric(epsilon, cells)) };
const folded: Line = {
  takes: ["B"],
  open: true,
  build: (given) => built(given, affine(primeOf(given.domain), integer(given, "B")), spendingOne(given.epsilon)),
};
const subsets: Line = { takes: [...POOL, "s"], optional: ["p"], open: true, build: overPool(poolSubset) };

const CATALOGUE: ReadonlyMap<string, Line> = new Map<string, Line>([
  ["grr", { takes: [], build: overItems((epsilon, cells) => spendingOne(epsilon)(cells)) }],
  ["ss", { takes: ["s"], build: overItems(subsetOf) }],
  ["wss", { takes: ["design"], optional: ["s"], build: weighted }],
  ["sue", { takes: [], build: overItems(symmetric) }],
  ["oue", { takes: [], build: overItems((epsilon, cells) => unary(cells, HALF, spendingFlip(epsilon, HALF))) }],
  ["rappor", sketch],
  ["apple-cms", sketch],
  ["hcms", { takes: POOL, open: true, build: hadamardSketch }],
  ["gcms", subsets],
  ["gcms-target", { ...subsets, takes: [...subsets.takes, "f"], optional: [] }],
  ["he", signs],
  ["hr", signs],
  ["rhr", { takes: ["b"], build: overSigns(blocksOf) }],
  ["blh", folded],
  ["olh", folded],
  ["ocms", folded],
  ["ocms-mse", { ...folded, takes: ["B", "f"] }],
  ["ocms-l2", folded],
  ["ocms-round", folded],
  ["ais", { takes: ["s"], open: true, build: windows }],
]);
const HALF = WORD_VALUES / 2n;

/**
 * Build the mechanism of a campaign.
 *
 * @param domain the number of items, "other" included; undefined in the open domain.
 * @param designs that the app brings along, for `wss`.
 * @throws FormatError a parameter is missing, unknown or out of range; the sentence says which and the range.
 */
export function buildMechanism(terms: MechanismTerms, domain: number | undefined, designs: readonly Design[]): Mechanism {
  const { name, epsilon, parameters } = terms;
  const line = CATALOGUE.get(name);
  if (line === undefined) throw new FormatError(`mechanism must be one of ${[...CATALOGUE.keys()].join(", ")}`);
  const known = [...line.takes, ...(line.optional ?? [])];
  const missing = line.takes.find((letter) => !Object.hasOwn(parameters, letter));
  if (missing !== undefined) throw new FormatError(`mechanism ${name} lacks the parameter ${missing}`);
  if (Object.keys(parameters).some((letter) => !known.includes(letter))) {
    throw new FormatError(`mechanism ${name} takes these parameters alone: ${known.join(", ") || "none"}`);
  }
  if (domain === undefined && line.open !== true) throw new FormatError(`mechanism ${name} needs a dictionary`);
  if (domain !== undefined && !(domain >= 2 && domain <= MOST_ITEMS)) {
    throw new FormatError(`domain is ${String(domain)}, must be in 2..${String(MOST_ITEMS)} items, "other" included`);
  }
  if (line.takes.includes("f")) requireShare(parameters.f, name === "ocms-mse");
  return line.build({ epsilon, domain, parameters, designs });
}

function built(given: Given, encoder: Encoder, responder: (cells: bigint) => Responder): Mechanism {
  return mechanism(given.domain, encoder, responder(encoder.cells));
}

function spendingOne(epsilon: number): (cells: bigint) => Responder {
  return (cells) => randomisedResponse(cells, spendingThreshold(epsilon, cells, 1n));
}

function subsetOf(epsilon: number, cells: bigint, given: Given): Responder {
  const size = integer(given, "s");
  return subset(cells, size, spendingThreshold(epsilon, cells, size));
}

function poolSubset(cells: bigint, given: Given): Responder {
  const size = integer(given, "s");
  const most = spendingThreshold(given.epsilon, cells, size);
  const { p } = given.parameters;
  if (p === undefined) return subset(cells, size, most);
  if (typeof p !== "number") throw new FormatError("p must be a number");
  const keep = probabilityThreshold(p, "p");
  const responder = subset(cells, size, keep);
  if (keep > most) throw new FormatError(`p is ${String(p)}: it spends more than epsilon, ${String(given.epsilon)}`);
  return responder;
}

function hadamardSketch(given: Given): Mechanism {
  const outer = poolOf(given);
  const encoder = nested(outer, hadamard(outer.cells, 1n));
  return mechanism(undefined, encoder, spendingOne(given.epsilon)(encoder.cells));
}

function windows(given: Given): Mechanism {
  const [prime, size] = [primeOf(given.domain), integer(given, "s")];
  const keep = spendingThreshold(given.epsilon, prime, size);
  return mechanism(given.domain, affine(prime, prime), interval(prime, size, keep));
}

function weighted(given: Given): Mechanism {
  const { design: name, s } = given.parameters;
  const design = designNamed(typeof name === "string" ? name : "", given.designs);
  if (design.width < (given.domain ?? 0)) {
    throw new FormatError(`the design has ${String(design.width)} cells, must have one for each item`);
  }
  if (s !== undefined && s !== design.size) throw new FormatError(`s must be ${String(design.size)}, or left out`);
  return mechanism(given.domain, identity(BigInt(design.width)), weightedDesign(given.epsilon, design));
}

function blocksOf(given: Given): bigint {
  const [bits, most] = [integer(given, "b"), (given.domain ?? 2).toString(2).length];
  if (!(bits >= 1n && bits <= BigInt(most))) throw new FormatError(`b is ${String(bits)}, must be in 1..${String(most)}`);
  return 1n << (bits - 1n);
}

function poolOf(given: Given): Encoder {
  const [k, m] = [Number(integer(given, "k")), Number(integer(given, "m"))];
  const encoder = pool(k, m, given.parameters.seed);
  if (k > 1 && k * m > MOST_TALLY_CELLS) throw new FormatError("k times m must be at most 2**28 cells of the tally");
  return encoder;
}

function integer({ parameters }: Given, letter: string): bigint {
  const value = parameters[letter];
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && LARGE.test(value) && BigInt(value) > BigInt(Number.MAX_SAFE_INTEGER)) {
    return BigInt(value);
  }
  throw new FormatError(`${letter} must be an integer, as text of its digits only beyond 2**53 - 1`);
}

function requireShare(share: unknown, above: boolean): void {
  if (typeof share === "number" && share <= 1 && (above ? share > 0 : share >= 0)) return;
  throw new FormatError(`f must be a number in ${above ? "(0" : "[0"}, 1]`);
}
