import { describe, expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { blake2b, hex, unhex, utf8 } from "../src/bytes.js";
import { digestOf, itemOf, parseDictionary } from "../src/values/dictionary.js";
import { DEFAULT_IGNORABLE_CODE_POINT } from "../src/values/invisible.js";
import { canonical, faultOfItem, fingerprintOf } from "../src/values/items.js";
import { classOf, loadAssigned } from "../src/values/unicode13.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const numbered = (entries: readonly Entry[]): [number, Entry][] => entries.map((entry, place) => [place, entry]);
const assigned = await loadAssigned();

/** What a fault says, by the reason in the vectors. */
const SAID: Readonly<Record<string, RegExp>> = {
  too_long: /has more than 4096 bytes/,
  no_items: /is empty, must hold at least 1 item/,
  empty: /is empty/,
  twice: /is there twice/,
  not_utf8: /is not UTF-8/,
  byte_order_mark: /begins with a byte order mark/,
  control_character: /holds a control character/,
  lone_surrogate: /holds a lone surrogate/,
  line_separator: /holds a separator of lines/,
  paragraph_separator: /holds a separator of paragraphs/,
  direction_control: /holds a control of direction/,
  invisible_character: /holds an invisible character/,
  not_normal_form: /is not in Unicode's normal form NFC/,
};

describe("items", () => {
  const { accept, refuse } = vectors("items");

  test.each(numbered(accept))("accept %i", (_, { text, times = 1, fingerprint }) => {
    const whole = text.repeat(times);
    expect(faultOfItem(whole, assigned)).toBeUndefined();
    expect(String(fingerprintOf(whole))).toBe(fingerprint);
  });

  test.each(numbered(refuse))("refuse %i", (_, { text, times = 1, reason }) => {
    expect(faultOfItem(text.repeat(times), assigned)).toMatch(SAID[reason] ?? /^$/);
  });

  const linesOf = (name: string): string[] => {
    const packed = readFileSync(new URL(`../../../tests/lists/${name}.txt.gz`, import.meta.url));
    return gunzipSync(packed).toString().trim().split("\n");
  };
  const isUnfit = (value: string): boolean => faultOfItem(canonical(value, assigned), assigned) !== undefined;

  test("every emoji may be one", () => {
    expect(linesOf("emoji").filter(isUnfit)).toEqual([]);
  });

  test("every real word may be one, except those with a space of no width", () => {
    const unfit = linesOf("words").filter(isUnfit);
    expect(unfit.length).toBe(50);
    expect(unfit.filter((value) => !value.includes("\u200b"))).toEqual(["\u0d0e\u0d38\u0d4d\u0d31\u0d4d\u0d31\u0d4b\u0d23\u0d3f\u0d2f\u200d"]);
  });

  test("what is invisible is Unicode's property, of all that 13.0 knows", () => {
    const property = new RegExp(`^[${classOf(DEFAULT_IGNORABLE_CODE_POINT)}]$`, "u");
    const wrong: number[] = [];
    for (let code = 0; code < 0x110000; code += 1) {
      const letter = String.fromCodePoint(code);
      if (assigned(code) && property.test(letter) !== /^\p{Default_Ignorable_Code_Point}$/u.test(letter)) wrong.push(code);
    }
    expect(wrong).toEqual([]);
  });
});

describe("dictionaries", () => {
  const { accept, refuse } = vectors("dictionaries");
  const bytesOf = ({ file, times = 1 }: Entry): Uint8Array => unhex(file.repeat(times));

  test.each(numbered(accept))("accept %i", async (_, entry) => {
    const dictionary = await parseDictionary(bytesOf(entry));
    expect([...dictionary.keys()]).toEqual(entry.items);
    expect(digestOf(dictionary)).toBe(entry.digest);
    for (const { value, position, pool_item: item } of entry.values) {
      const letters = await loadAssigned();
      const text = canonical(value, letters);
      expect(itemOf(text, dictionary, dictionary.size + 1, letters)).toBe(BigInt(position));
      expect(String(itemOf(text, dictionary, undefined, letters))).toBe(item);
    }
  });

  test.each(numbered(refuse))("refuse %i", async (_, entry) => {
    expect(await refusal(() => parseDictionary(bytesOf(entry)))).toMatch(SAID[entry.reason] ?? /^$/);
  });

  test("a dictionary of more items than the campaign says is refused", async () => {
    expect((await parseDictionary(utf8("a\nb\n"), 2)).size).toBe(2);
    expect(await refusal(() => parseDictionary(utf8("a\nb\nc\n"), 2))).toMatch(/more items than the 2/);
  });
});

describe("normal form", () => {
  const forms = vectors("normal_form") as unknown as Entry;

  test("is Python's for every drawn text", () => {
    for (const [value, form] of [...forms.drawn, ...forms.values.map((each: Entry) => [each.value, each.canonical])]) {
      expect(canonical(value, assigned)).toBe(form);
    }
  });

  test("the shipped table is Python's", () => {
    const table = new URL("../../../hushcount/formats/unassigned-13.0.txt", import.meta.url);
    const unassigned = new Set<number>();
    for (const line of readFileSync(table, "ascii").trim().split("\n")) {
      const [first = 0, last = 0] = line.split("..").map((code) => parseInt(code, 16));
      for (let code = first; code <= last; code += 1) unassigned.add(code);
    }
    let wrong = 0;
    for (let code = 0; code < 0x110000; code += 1) if (assigned(code) === unassigned.has(code)) wrong += 1;
    expect(wrong).toBe(0);
  });

  test("every code point has Python's form", () => {
    const lines: string[] = [];
    for (let code = 0; code < 0x110000; code += 1) {
      if (code < 0xd800 || code > 0xdfff) lines.push(`${canonical(String.fromCodePoint(code), assigned)}\n`);
    }
    expect(hex(blake2b(utf8(lines.join("")), { length: 32 }))).toBe(forms.every_code_point.digest);
  });

  test("no item holds what Python's may not hold", () => {
    const unfit = new Set<number>();
    for (const range of forms.unfit.ranges) {
      const [first = 0, last = 0] = range.split("..").map((code: string) => parseInt(code, 16));
      for (let code = first; code <= last; code += 1) unfit.add(code);
    }
    const wrong: string[] = [];
    for (let code = 0; code < 0x110000; code += 1) {
      const fault = faultOfItem(canonical(`a${String.fromCodePoint(code)}b`, assigned), assigned);
      if ((fault !== undefined) !== unfit.has(code)) wrong.push(code.toString(16));
    }
    expect(wrong).toEqual([]);
  });
});
