import fc from "fast-check";
import { expect, test } from "vitest";
import { bytesOf, integerOf, utf8 } from "../src/bytes.js";
import { parseCampaign } from "../src/campaign/at-once.js";
import { canonicalJson } from "../src/canonical-json.js";
import { HushcountError } from "../src/errors.js";
import { parseJson } from "../src/json.js";
import { eventBits } from "../src/maths/event-bits.js";
import { otherCells } from "../src/maths/subsets.js";
import { uniform, type Words } from "../src/maths/words.js";
import { WORD_VALUES } from "../src/maths/thresholds.js";
import { parseDictionary } from "../src/values/dictionary.js";
import { canonical } from "../src/values/items.js";
import { loadAssigned } from "../src/values/unicode13.js";
import { bitLength } from "../src/wire/packing.js";
import { subsetCode, subsetField } from "../src/wire/subsets.js";
import { vectors, type Entry } from "./vectors.js";

function choose(of: number, size: number): bigint {
  let [top, bottom] = [1n, 1n];
  for (let step = 0; step < size; step += 1) [top, bottom] = [top * BigInt(of - step), bottom * BigInt(step + 1)];
  return top / bottom;
}

const subsets = fc.integer({ min: 2, max: 300 }).chain((bound) =>
  fc.uniqueArray(fc.nat(bound - 1), { minLength: 1, maxLength: bound }).map((cells) => ({
    bound,
    cells: cells.sort((one, other) => one - other),
  })),
);

test("a subset's rank is the sum of binomials, whichever way is the shortest", () => {
  fc.assert(
    fc.property(subsets, ({ bound, cells }) => {
      const field = subsetField(bound, cells.length);
      const rank = cells.reduce((sum, cell, place) => sum + choose(cell, place + 1), 0n);
      expect(field.codes).toBe(choose(bound, cells.length));
      expect(subsetCode(field, cells)).toBe(rank);
    }),
  );
});

test("integers and bytes are each other's inverse", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (bytes) => {
      const integer = integerOf(bytes);
      expect(bytesOf(integer, bytes.length)).toEqual(Uint8Array.from(bytes));
      expect(bitLength(integer)).toBe(integer === 0n ? 0 : integer.toString(2).length);
    }),
  );
});

/** Words of fast-check: any, with the edges often. */
function wordsFrom(halves: readonly number[]): Words {
  let place = 0;
  return (count) => Uint32Array.from({ length: 2 * count }, () => halves[place++ % halves.length] ?? 0);
}

const half = fc.oneof(fc.nat(0xffffffff), fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xffffffff));

test("draws are in their range, and subsets are of others", () => {
  fc.assert(
    fc.property(fc.array(half, { minLength: 31, maxLength: 31 }), fc.bigInt({ min: 1n, max: WORD_VALUES }), (halves, bound) => {
      // One word is surely below the limit, so that the draw ends.
      expect(uniform(bound, wordsFrom([...halves, 0, 0, 0]))).toBeLessThan(bound);
    }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 200 }), fc.nat(), fc.nat(), (width, size, own) => {
      const [s, cell] = [1 + (size % (width - 1)), own % width];
      const random: Words = (count) => crypto.getRandomValues(new Uint32Array(2 * count));
      const cells = otherCells(width, s, cell, random);
      expect(new Set(cells).size).toBe(s);
      expect(cells.every((each) => each >= 0 && each < width && each !== cell)).toBe(true);
    }),
  );
});

test("bits are those of the numbers that their digits make, by any threshold", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: WORD_VALUES - 1n }), fc.array(half, { minLength: 16, maxLength: 16 }), (t, digits) => {
      // All later digits are 0: an undecided bit is then set, unless the rest of the threshold is 0.
      let place = 0;
      const words: Words = (count) => Uint32Array.from({ length: 2 * count }, () => digits[place++] ?? 0);
      const bits = eventBits(t, 1, words);
      for (let bit = 0; bit < 64; bit += 1) {
        let number = 0n;
        for (let digit = 0; digit < 8; digit += 1) {
          const drawn = ((digits[2 * digit + (bit >> 5)] ?? 0) >>> (bit & 31)) & 1;
          number = 2n * number + BigInt(drawn);
        }
        expect(((bits[bit >> 5] ?? 0) >>> (bit & 31)) & 1).toBe(number << 56n < t ? 1 : 0);
      }
    }),
  );
});

test("canonical JSON is read back as the same data, and is its own canonical form", () => {
  const data = fc.jsonValue({ maxDepth: 5, stringUnit: "grapheme" });
  fc.assert(
    fc.property(data, (value) => {
      fc.pre(!JSON.stringify(value).match(/\d{16}(?![.\d]*e|\d*\.)/));
      const bytes = canonicalJson(value);
      const again = parseJson(bytes, 2 ** 20, "the file");
      expect(canonicalJson(again)).toEqual(bytes);
      expect(again).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("whatever the bytes are, only our own errors leave the readers", async () => {
  const file = utf8(JSON.stringify((vectors("campaigns").accept.find(({ name }) => name === "both") as Entry).file));
  const damaged = fc
    .tuple(fc.nat(file.length - 1), fc.nat(file.length - 1), fc.uint8Array({ maxLength: 8 }))
    .map(([start, end, bytes]) => Uint8Array.from([...file.slice(0, start), ...bytes, ...file.slice(end)]));
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 })), async (bytes) => {
      for (const read of [() => parseCampaign(bytes), () => parseDictionary(bytes)]) {
        const error: unknown = await (async () => read())().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        if (error !== undefined) expect(error).toBeInstanceOf(HushcountError);
      }
    }),
    { numRuns: 300 },
  );
});

test("the one spelling of a text is its own spelling, and NFC where 13.0 has all letters", async () => {
  const assigned = await loadAssigned();
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
      const once = canonical(text, assigned);
      expect(canonical(once, assigned)).toBe(once);
      if (Array.from(text).every((letter) => assigned(letter.codePointAt(0) ?? 0))) expect(once).toBe(text.normalize("NFC"));
    }),
  );
});
