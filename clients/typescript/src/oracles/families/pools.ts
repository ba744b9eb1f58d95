/** Mechanisms with a pool of functions that are fixed for the campaign. */

import { FormatError } from "../../errors.js";
import { probabilityThreshold, spendingThreshold } from "../../maths/thresholds.js";
import type { Encoder } from "../encoders.js";
import { integer, spendingOne, type Family, type Given } from "../given.js";
import { hadamard } from "../hadamard.js";
import { mechanism, type Mechanism } from "../mechanism.js";
import { nested, pool } from "../pool.js";
import type { Responder } from "../responders.js";
import { subset } from "../subset.js";
import { symmetric } from "../unary.js";

const MOST_TALLY_CELLS = 2 ** 28;

const overPool = (responder: (cells: bigint, given: Given) => Responder) => (given: Given): Mechanism =>
  mechanism(undefined, poolOf(given), responder(integer(given, "m"), given));

const sketch = overPool((cells, { epsilon }) => symmetric(epsilon, cells));
const subsets = overPool(poolSubset);

export const FAMILY: Family = {
  rappor: sketch,
  "apple-cms": sketch,
  hcms: hadamardSketch,
  gcms: subsets,
  "gcms-target": subsets,
};

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

function poolOf(given: Given): Encoder {
  const [k, m] = [Number(integer(given, "k")), Number(integer(given, "m"))];
  const encoder = pool(k, m, given.parameters.seed);
  if (k > 1 && k * m > MOST_TALLY_CELLS) throw new FormatError("k times m must be at most 2**28 cells of the tally");
  return encoder;
}
