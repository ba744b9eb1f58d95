/** Weighted designs: rows of s cells such that every pair of cells is covered by the same weight. */

import { blake2b, hex, integerOf, unhex, utf8 } from "../bytes.js";
import { FormatError } from "../errors.js";
import { fieldsOf, HEX_32, listOf, numberOf, textOf } from "../fields.js";
import { isPrime } from "../maths/primes.js";
import { spendingThreshold, WORD_VALUES } from "../maths/thresholds.js";
import { event, uniform, type Words } from "../maths/words.js";
import { requireSized, type Responder } from "./responders.js";

const NAME = /^([1-9]\d{0,3})-([1-9]\d{0,3})-[0-9a-f]{64}$/;
const LARGEST_WIDTH = 1024;
const MOST_BLOCKS = 2 ** 16;
const LARGEST_TOTAL = 1n << 62n;

/** Base blocks and their turns: row b * turns + u is block b with every cell c < turns moved to (c + u) mod turns. */
export interface Design {
  readonly width: number;
  readonly size: number;
  readonly turns: number;
  readonly blocks: readonly (readonly number[])[];
  readonly weights: readonly number[];
}

/**
 * Return width-size-digest, the name of a design in a campaign; the digest fixes the rows, their order and their
 * weights.
 */
export function nameOf({ width, size, turns, blocks, weights }: Design): string {
  const text = JSON.stringify([width, size, turns, blocks, weights]);
  const digest = hex(blake2b(utf8(text), { length: 32, person: "hushcount design" }));
  return `${String(width)}-${String(size)}-${digest}`;
}

/** Read the design files of an app, such as `hushcount/designs/designs.json` of the Python package. */
export function parseDesigns(files: readonly unknown[]): Design[] {
  const name = "the file of designs";
  return files.flatMap((file) => {
    const parts = fieldsOf(file, name, ["format", "designs"]);
    numberOf(parts, "format", [1, 1], name);
    return listOf(parts, "designs", LARGEST_WIDTH, name).map((part) => designOf(part, name));
  });
}

function designOf(data: unknown, name: string): Design {
  const fields = fieldsOf(data, name, ["width", "size", "turns", "digest", "blocks", "weights"]);
  const width = numberOf(fields, "width", [2, LARGEST_WIDTH], name, true);
  const octets = Math.ceil(width / 8);
  const design = {
    width,
    size: numberOf(fields, "size", [1, width - 1], name, true),
    turns: numberOf(fields, "turns", [1, width], name, true),
    blocks: listOf(fields, "blocks", MOST_BLOCKS, name).map((block) => {
      if (typeof block !== "string" || block.length !== 2 * octets || /[^0-9a-f]/.test(block)) {
        throw new FormatError(`${name}: every block must be ${String(octets)} bytes in hexadecimal digits`);
      }
      const bits = integerOf(unhex(block));
      return Array.from({ length: width }, (_, cell) => cell).filter((cell) => ((bits >> BigInt(cell)) & 1n) === 1n);
    }),
    weights: listOf(fields, "weights", MOST_BLOCKS, name).map((weight) => {
      if (typeof weight === "number" && Number.isSafeInteger(weight) && weight >= 1) return weight;
      throw new FormatError(`${name}: every weight must be a whole number of at least 1`);
    }),
  };
  const { turns, size, blocks, weights } = design;
  if (![1, width - 1, width].includes(turns) || blocks.length === 0 || blocks.length !== weights.length) {
    throw new FormatError(`${name}: turns must be 1, width - 1 or width, and there must be a weight for each block`);
  }
  if (blocks.some((block) => block.length !== size)) throw new FormatError(`${name}: every block must hold size cells`);
  if (!nameOf(design).endsWith(textOf(fields, "digest", HEX_32, name))) {
    throw new FormatError(`${name}: digest is not that of the design`);
  }
  return design;
}

/**
 * Return the design that a campaign names: a constructed design, or a design of the app.
 *
 * @throws FormatError the design is not known, so the app must pass its file.
 */
export function designNamed(name: string, given: readonly Design[]): Design {
  const [, width = "", size = ""] = NAME.exec(name) ?? [];
  const built = width === "" ? undefined : constructed(Number(width), Number(size));
  const found = [...(built === undefined ? [] : [built]), ...given].find((design) => nameOf(design) === name);
  if (found !== undefined) return found;
  throw new FormatError("design must be width-size-digest of a known design: give the client its file in `designs`");
}

/** Return the constructed design of this size: single cells, all cells but one, pairs, or windows of a prime field. */
function constructed(width: number, size: number): Design | undefined {
  if (!(width >= 2 && width <= LARGEST_WIDTH && size >= 1 && size < width)) return undefined;
  const equal = (turns: number, blocks: readonly (readonly number[])[]): Design => ({
    width,
    size,
    turns,
    blocks: blocks.map((block) => block.slice().sort((one, other) => one - other)),
    weights: blocks.map(() => 1),
  });
  if (size === 1 || size === width - 1) return equal(width, [Array.from({ length: size }, (_, cell) => cell)]);
  if (size === 2) {
    const turns = width % 2 === 1 ? width : width - 1;
    const pairs = Array.from({ length: (turns - 1) / 2 }, (_, step) => [0, step + 1]);
    return equal(turns, turns === width ? pairs : [...pairs, [0, turns]]);
  }
  if (!isPrime(width)) return undefined;
  const blocks: number[][] = [];
  for (let factor = 1; 2 * factor < width; factor += 1) {
    let inverse = 1;
    while ((inverse * factor) % width !== 1) inverse += 1;
    blocks.push(Array.from({ length: size }, (_, place) => (inverse * place) % width));
  }
  return equal(width, blocks);
}

/** The rows with a cell, or without it, and the running sums of their weights. */
interface Choice {
  readonly rows: readonly number[];
  readonly sums: readonly bigint[];
}

/**
 * Return the responder of a design's rows: with probability keep / 2**64 a row with the cell, else a row without the
 * cell; rows are drawn by weight.
 *
 * @throws FormatError the weights of cells differ so much that a report could spend more than epsilon.
 */
export function weightedDesign(epsilon: number, design: Design): Responder {
  const { turns } = design;
  const width = BigInt(design.width);
  const rows = BigInt(design.blocks.length * turns);
  const totals = cellWeights(design);
  const total = BigInt(turns) * design.weights.reduce((sum, weight) => sum + BigInt(weight), 0n);
  const keep = keptOf(epsilon, totals, total);
  requireSized(width, BigInt(design.size), keep);
  const known = new Map<number, readonly [Choice, Choice]>();
  const choicesOf = (cell: number): readonly [Choice, Choice] => {
    const choices = known.get(cell) ?? [choiceOf(design, cell, true), choiceOf(design, cell, false)];
    known.set(cell, choices);
    return choices;
  };
  return {
    width,
    fields: [{ bound: rows, least: 0n }],
    respond: (item, words) => {
      const own = Number(item);
      const kept = event(keep, words);
      // The rows with a moved cell are the rows with cell 0, turned by the cell's number.
      const [holding, missing] = choicesOf(own < turns ? 0 : own);
      const [held, other] = [rowOf(holding, words), rowOf(missing, words)];
      const row = kept ? held : other;
      // Cell number `turns` is never moved, and with one turn no cell is moved. Then nothing is turned.
      const turn = ((row % turns) + own) % turns;
      return { numbers: [BigInt(row - (row % turns) + turn)] };
    },
  };
}

/** Return the threshold at which the greatest ratio of a row's probabilities for two cells is exp(epsilon). */
function keptOf(epsilon: number, totals: readonly bigint[], total: bigint): bigint {
  const sorted = [...totals].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  const [low = 0n, second = 0n] = sorted;
  const high = sorted.at(-1) ?? 0n;
  if (!(low > 0n && high < total && total < LARGEST_TOTAL)) throw new FormatError("the design is hardly balanced");
  // (T - R') / R is greatest for the two cells with the least R.
  const [one, other] = [total - second, total - low];
  const [above, below] = one * second >= other * low ? [one, low] : [other, second];
  const keep = spendingThreshold(epsilon, above + below, below);
  const [p, q] = [keep, WORD_VALUES - keep];
  // For a row with both cells, with neither cell, or with only the second cell, the ratio must not exceed p/q *
  // above/below.
  const isWithin = (top: bigint, bottom: bigint): boolean => top * q * below <= bottom * p * above;
  if (isWithin(high, low) && isWithin(total - low, total - high) && isWithin(high * q, (total - high) * p)) return keep;
  throw new FormatError("the design is hardly balanced: a report could spend more than epsilon");
}

function cellWeights(design: Design): bigint[] {
  const weightOf = (cell: number): bigint => choiceOf(design, cell, true).sums.at(-1) ?? 0n;
  const moved = weightOf(0);
  return Array.from({ length: design.width }, (_, cell) => (cell < design.turns ? moved : weightOf(cell)));
}

function choiceOf({ turns, blocks, weights }: Design, cell: number, holding: boolean): Choice {
  const rows: number[] = [];
  const sums: bigint[] = [];
  let sum = 0n;
  blocks.forEach((block, number) => {
    const cells = new Set(block);
    for (let turn = 0; turn < turns; turn += 1) {
      if (cells.has(cell < turns ? (cell + turns - turn) % turns : cell) !== holding) continue;
      sum += BigInt(weights[number] ?? 0);
      rows.push(number * turns + turn);
      sums.push(sum);
    }
  });
  return { rows, sums };
}

/** Draw a row: a row of weight w gets exactly w of the values of a uniform draw. */
function rowOf({ rows, sums }: Choice, words: Words): number {
  const drawn = uniform(sums.at(-1) ?? 1n, words);
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0n) > drawn) high = middle;
    else low = middle + 1;
  }
  return rows[low] ?? 0;
}
