/**
 * The laws of reports, from the sampler that browsers use, against the exact probability of every report.
 *
 * Each test draws 12,000 reports and refuses a law if chi-square is above its quantile of 1e-8; there are 20 laws, so
 * that a right sampler fails less than once in 5 million runs. That it has power: reports of a client with 30 % less or
 * more epsilon are refused.
 */

import { describe, expect, test } from "vitest";
import { integerOf } from "../src/bytes.js";
import { systemWords, type Words } from "../src/maths/words.js";
import { buildMechanism } from "../src/oracles/every.js";
import type { MechanismTerms } from "../src/oracles/given.js";
import { affine } from "../src/oracles/affine.js";
import type { Encoder } from "../src/oracles/encoders.js";
import { hadamard } from "../src/oracles/hadamard.js";
import { pool } from "../src/oracles/pool.js";

const REPORTS = 12_000;
const SEED = "5eed".repeat(16);
const EPSILON = 1.5;

/** Words of the system's generator, fetched many at once: one call for each word takes most of the time. */
const words = ((): Words => {
  let left: Uint32Array = new Uint32Array();
  let place = 0;
  return (count) => {
    if (place + 2 * count > left.length) [left, place] = [systemWords(8192), 0];
    place += 2 * count;
    return left.slice(place - 2 * count, place);
  };
})();

/** A mechanism small enough to write down the probability of all its reports. */
interface Law {
  readonly terms: Omit<MechanismTerms, "epsilon">;
  readonly domain: number;
  readonly item: bigint;
  /** Return the probability of each packed report, by its integer, for a client that spends epsilon. */
  readonly exact: (epsilon: number) => ReadonlyMap<bigint, number>;
}

/** The probability of own of `m` cells where `s` are reported. */
const kept = (epsilon: number, m: number, s = 1): number => (Math.exp(epsilon) * s) / (Math.exp(epsilon) * s + m - s);

/** Answers by code, given the own cell: what a responder does. */
type Answers = (epsilon: number, own: number) => ReadonlyMap<number, number>;

const randomised = (m: number): Answers => (epsilon, own) => {
  const p = kept(epsilon, m);
  return new Map(Array.from({ length: m }, (_, cell) => [cell, cell === own ? p : (1 - p) / (m - 1)]));
};

const windows = (m: number, s: number): Answers => (epsilon, own) => {
  const p = kept(epsilon, m, s);
  const holds = (start: number): boolean => (own - start + m) % m < s;
  return new Map(Array.from({ length: m }, (_, start) => [start, holds(start) ? p / s : (1 - p) / (m - s)]));
};

/** Subsets by rank: colexicographic order. */
const subsets = (m: number, s: number): Answers => (epsilon, own) => {
  const all = Array.from({ length: 2 ** m }, (_, bits) => bits).filter((bits) => ones(bits) === s);
  const holding = all.filter((bits) => (bits >> own) & 1).length;
  const p = kept(epsilon, m, s);
  return new Map(all.map((bits, rank) => [rank, (bits >> own) & 1 ? p / holding : (1 - p) / (all.length - holding)]));
};

const bits = (m: number, law: (epsilon: number) => readonly [p: number, q: number]): Answers => (epsilon, own) => {
  const [p, q] = law(epsilon);
  const one = (cell: number, set: boolean): number => (cell === own ? (set ? p : 1 - p) : set ? q : 1 - q);
  return new Map(
    Array.from({ length: 2 ** m }, (_, code) => [
      code,
      Array.from({ length: m }, (_, cell) => one(cell, ((code >> cell) & 1) === 1)).reduce((a, b) => a * b, 1),
    ]),
  );
};

const symmetric = (epsilon: number): readonly [number, number] => {
  const p = kept(epsilon / 2, 2);
  return [p, 1 - p];
};
const optimised = (epsilon: number): readonly [number, number] => [0.5, 1 / (Math.exp(epsilon) + 1)];

/** Put a uniform function before the answer, whose code is the most significant digit. */
function over(encoder: Encoder, answers: Answers, item: bigint): Law["exact"] {
  return (epsilon) => {
    let functions: { digits: bigint; named: bigint[] }[] = [{ digits: 0n, named: [] }];
    let radix = 1n;
    for (const { bound, least } of encoder.fields) {
      const [before, step] = [functions, radix];
      functions = [];
      for (let value = least; value < bound; value += 1n) {
        for (const { digits, named } of before) {
          functions.push({ digits: digits + step * (value - least), named: [...named, value] });
        }
      }
      radix *= bound - least;
    }
    const law = new Map<bigint, number>();
    for (const { digits, named } of functions) {
      for (const [code, probability] of answers(epsilon, Number(encoder.cell(item, named)))) {
        law.set(digits + radix * BigInt(code), probability / functions.length);
      }
    }
    return law;
  };
}

function ones(value: number): number {
  return value.toString(2).replaceAll("0", "").length;
}

const identity: Encoder = { cells: 0n, fields: [], cell: (item) => item };
const item = 3n;
const sketch = pool(2, 4, SEED);
const nestedCell = (named: readonly bigint[]): bigint =>
  hadamard(4n, 1n).cell(sketch.cell(item, named), named.slice(1));
const sketched: Encoder = {
  cells: 2n,
  fields: [...sketch.fields, ...hadamard(4n, 1n).fields],
  cell: (_, named) => nestedCell(named),
};
const law = (name: string, parameters: MechanismTerms["parameters"], encoder: Encoder, answers: Answers, domain = 5): Law => ({
  terms: { name, parameters },
  domain,
  item,
  exact: over(encoder, answers, item),
});
const poolOf = { k: 2, m: 4, seed: SEED };
/** Pairs of 7 cells, by the rows of the cyclic design: row b * 7 + u is {u, b + 1 + u}. */
const paired: Answers = (epsilon, own) => {
  const p = kept(epsilon, 7, 2);
  const holds = (row: number): boolean => [row % 7, ((row % 7) + Math.floor(row / 7) + 1) % 7].includes(own);
  return new Map(Array.from({ length: 21 }, (_, row) => [row, holds(row) ? p / 6 : (1 - p) / 15]));
};
const PAIRS = "7-2-09f82cf568c828254740de73ced4bc35cceeaa4b29bb2aba0a7e99ce453d52a5";

const LAWS: readonly Law[] = [
  law("grr", {}, identity, randomised(5)),
  law("ss", { s: 2 }, identity, subsets(5, 2)),
  law("ss", { s: 4 }, identity, subsets(7, 4), 7),
  law("wss", { design: PAIRS }, identity, paired, 7),
  law("sue", {}, identity, bits(5, symmetric)),
  law("oue", {}, identity, bits(5, optimised)),
  law("rappor", poolOf, sketch, bits(4, symmetric)),
  law("apple-cms", poolOf, sketch, bits(4, symmetric)),
  law("hcms", poolOf, sketched, randomised(2)),
  law("gcms", { ...poolOf, s: 2 }, sketch, subsets(4, 2)),
  law("gcms-target", { ...poolOf, s: 1, f: 0.1 }, sketch, subsets(4, 1)),
  law("he", {}, hadamard(5n, 1n), randomised(2)),
  law("hr", {}, hadamard(5n, 1n), randomised(2)),
  law("rhr", { b: 2 }, hadamard(5n, 2n), randomised(4)),
  law("olh", { B: 3 }, affine(5n, 3n), randomised(3)),
  law("blh", { B: 2 }, affine(5n, 2n), randomised(2)),
  law("ocms", { B: 4 }, affine(5n, 4n), randomised(4)),
  law("ocms-mse", { B: 2, f: 0.5 }, affine(7n, 2n), randomised(2), 7),
  law("ais", { s: 2 }, affine(5n, 5n), windows(5, 2)),
  law("ais", { s: 3 }, affine(11n, 11n), windows(11, 3), 11),
];

/** Return how far the counts are from the law, in standard deviations of a normal variable (Wilson and Hilferty). */
function distance({ terms, domain, item: held }: Law, epsilon: number, exact: ReadonlyMap<bigint, number>): number {
  // A fingerprint in a pool is any number of the field; the laws above take the same one.
  const mechanism = buildMechanism({ ...terms, epsilon }, domain, []);
  const counts = new Map<bigint, number>();
  for (let report = 0; report < REPORTS; report += 1) {
    const code = integerOf(mechanism.report(held, words));
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  let square = 0;
  for (const [code, probability] of exact) {
    square += ((counts.get(code) ?? 0) - REPORTS * probability) ** 2 / (REPORTS * probability);
    counts.delete(code);
  }
  // A report that the law does not have.
  if (counts.size > 0) return Infinity;
  const free = exact.size - 1;
  const spread = 2 / (9 * free);
  return ((square / free) ** (1 / 3) - (1 - spread)) / Math.sqrt(spread);
}

/** The quantile of 1e-8 of a normal variable is 5.61; the approximation of chi-square is good to a tenth there. */
const MOST = 6;

describe("laws", () => {
  test.each(LAWS.map((each, place) => [each.terms.name, place, each] as const))("%s (%i) samples its law", (_, __, each) => {
    const exact = each.exact(EPSILON);
    expect([...exact.values()].reduce((sum, probability) => sum + probability, 0)).toBeCloseTo(1, 12);
    expect(distance(each, EPSILON, exact)).toBeLessThan(MOST);
    expect(distance(each, 0.7 * EPSILON, exact)).toBeGreaterThan(MOST);
    expect(distance(each, 1.3 * EPSILON, exact)).toBeGreaterThan(MOST);
  });
});
