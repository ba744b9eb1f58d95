import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { hex, integerOf, unhex } from "../src/bytes.js";
import { isPrime, primeAtLeast } from "../src/maths/primes.js";
import { probabilityThreshold, spendingFlip, spendingThreshold, symmetricThreshold } from "../src/maths/thresholds.js";
import { buildMechanism } from "../src/oracles/every.js";
import { nameOf, parseDesigns, weightedDesign } from "../src/oracles/design.js";
import { affine, primeOf } from "../src/oracles/affine.js";
import { hadamard } from "../src/oracles/hadamard.js";
import { coefficients, pool } from "../src/oracles/pool.js";
import { wordsOf } from "../src/testing.js";
import { pack, reportBytes } from "../src/wire/packing.js";
import { subsetCode, subsetField } from "../src/wire/subsets.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const numbered = (entries: readonly Entry[]): [number, Entry][] => entries.map((entry, place) => [place, entry]);

/** What a refusal says, by the reason in the vectors. */
const SAID: Readonly<Record<string, RegExp>> = {
  epsilon_out_of_range: /^epsilon is /,
  probability_out_of_range: /^probability must be in/,
  keep_out_of_range: /^p must be above 0 and below 1/,
  width_out_of_range: /^width is /,
  size_out_of_range: /^s is /,
  says_nothing: /^p must be above s\/m, at which reports say nothing/,
  unknown_mechanism: /^mechanism must be one of grr, /,
  missing_parameter: /lacks the parameter/,
  unknown_parameter: /takes only these parameters/,
  parameter_out_of_range: /must be/,
  wrong_type: /must be an integer|must be a number/,
  domain_out_of_range: /^domain is /,
  needs_dictionary: /needs a dictionary/,
  unknown_design: /^design must be width-size-digest/,
  spends_more: /it spends more than epsilon/,
};

const shipped = readFileSync(new URL("../../../hushcount/designs/designs.json", import.meta.url), "utf8");
const designs = parseDesigns([JSON.parse(shipped)]);

describe("thresholds", () => {
  const { accept, refuse } = vectors("thresholds");

  function threshold(entry: Entry): bigint {
    if (entry.rule === "spending") {
      const keep = spendingThreshold(entry.epsilon, BigInt(entry.width), BigInt(entry.size));
      if (entry.reason === "says_nothing") buildMechanism({ name: "ais", epsilon: entry.epsilon, parameters: { s: Number(entry.size) } }, undefined, []);
      return keep;
    }
    if (entry.rule === "symmetric") return symmetricThreshold(entry.epsilon);
    if (entry.rule === "flip") return spendingFlip(entry.epsilon, BigInt(entry.keep));
    return probabilityThreshold(entry.probability);
  }

  test.each(numbered(accept))("accept %i", (_, entry) => {
    expect(String(threshold(entry))).toBe(entry.threshold);
  });

  test.each(numbered(refuse))("refuse %i", async (_, entry) => {
    expect(await refusal(() => threshold(entry))).toMatch(SAID[entry.reason] ?? /^$/);
  });
});

describe("encoders", () => {
  const { accept, refuse } = vectors("encoders");

  function made(entry: Entry): Entry {
    if (entry.encoder === "prime") return { prime: String(primeAtLeast(entry.domain)) };
    const item = BigInt(entry.item);
    if (entry.encoder === "pool") {
      return {
        coefficients: coefficients(entry.seed, entry.k, entry.row).map(String),
        cell: String(pool(entry.k, entry.m, entry.seed).cell(item, [BigInt(entry.row)])),
      };
    }
    if (entry.encoder === "affine") {
      const prime = primeOf(entry.domain ?? undefined);
      const numbers = ["slope", "shift"].filter((name) => name in entry).map((name) => BigInt(entry[name]));
      const encoder = affine(prime, BigInt(entry.buckets));
      expect(encoder.fields.length).toBe(numbers.length);
      return { prime: String(prime), cell: String(encoder.cell(item, numbers)) };
    }
    const encoder = hadamard(BigInt(entry.domain), BigInt(entry.blocks));
    return { order: Number(encoder.fields[0]?.bound), cell: String(encoder.cell(item, [BigInt(entry.column)])) };
  }

  test.each(numbered(accept))("accept %i", (_, entry) => {
    const result = made(entry);
    for (const name of Object.keys(result)) expect(result[name]).toEqual(entry[name]);
  });

  test.each(numbered(refuse))("refuse %i", async (_, { mechanism, domain, reason }) => {
    const said = await refusal(() => buildMechanism(mechanism, domain ?? undefined, designs));
    expect(said).toMatch(SAID[reason] ?? /^$/);
  });

  test("primes are those that division finds", () => {
    expect(Array.from({ length: 30 }, (_, number) => number).filter(isPrime)).toEqual([2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
  });
});

describe("reports", () => {
  const { accept, mechanisms } = vectors("reports") as ReturnType<typeof vectors> & { mechanisms: readonly Entry[] };
  const built = new Map(
    mechanisms.map(({ name, mechanism, domain }) => [name, buildMechanism(mechanism, domain ?? undefined, designs)]),
  );

  test.each(mechanisms.map(({ name, report_bytes: length }) => [name, length]))("%s has %i bytes", (name, length) => {
    expect(built.get(name)?.reportBytes).toBe(length);
  });

  test.each(numbered(accept))("accept %i", (_, { mechanism, item, words, report }) => {
    const given = wordsOf(words.map((word: string) => BigInt(`0x${word}`)));
    expect(hex(built.get(mechanism)?.report(BigInt(item), given) ?? new Uint8Array())).toBe(report);
    expect(() => given(1), "every word is taken").toThrow(/must be more/);
  });
});

describe("packing", () => {
  const { accept, layouts } = vectors("packing") as ReturnType<typeof vectors> & { layouts: readonly Entry[] };

  test.each(numbered(accept))("accept %i", (_, { layout, values, packed }) => {
    const { fields, report_bytes: length } = layouts.find(({ name }) => name === layout) as Entry;
    const numbers = fields.filter(({ kind }: Entry) => kind === "number").map(({ bound, least }: Entry) => ({ bound: BigInt(bound), least: BigInt(least) }));
    const last = fields.at(-1);
    const subset = last.kind === "subset" ? subsetField(Number(last.bound), last.count) : undefined;
    const bits = last.kind === "bits" ? { codes: 1n << BigInt(last.count) } : undefined;
    if (subset) expect(subset.form).toBe(last.form);
    expect(reportBytes(numbers, subset ?? bits)).toBe(length);
    const code = subset ? subsetCode(subset, values.at(-1)) : bits ? integerOf(unhex(values.at(-1))) : 0n;
    expect(hex(pack(numbers, values.slice(0, numbers.length).map(BigInt), length, code))).toBe(packed);
  });
});

describe("designs", () => {
  test("a file is refused if its design is another one than its digest says", async () => {
    const file = JSON.parse(shipped);
    file.designs[0].weights[0] += 1;
    expect(await refusal(() => parseDesigns([file]))).toMatch(/digest is not that of the design/);
  });

  test("a design whose cells weigh differently must not spend more than epsilon", async () => {
    // Cells 0 and 1 are in a row of weight 1, cell 2 in one of weight 100.
    const design = { width: 3, size: 1, turns: 1, blocks: [[0], [1], [2]], weights: [1, 1, 100] };
    expect(nameOf(design)).toMatch(/^3-1-/);
    expect(await refusal(() => weightedDesign(1, design))).toMatch(/hardly balanced/);
    expect(weightedDesign(1, { ...design, weights: [1, 1, 1] }).width).toBe(3n);
  });
});
