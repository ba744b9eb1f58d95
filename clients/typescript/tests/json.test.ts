import { describe, expect, test } from "vitest";
import { unhex } from "../src/bytes.js";
import { canonicalJson } from "../src/canonical-json.js";
import { parseJson } from "../src/json.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const numbered = (entries: readonly Entry[]): [number, Entry][] => entries.map((entry, place) => [place, entry]);

const SAID: Readonly<Record<string, RegExp>> = {
  integer_too_large: /has an integer above 2\*\*53 - 1/,
  not_finite: /not finite/,
  lone_surrogate: /has a lone surrogate/,
  duplicate_key: /has a key twice/,
  too_deep: /is nested deeper than 32 levels/,
  not_utf8: /is not UTF-8/,
  not_json: /is not JSON/,
};

describe("canonical JSON", () => {
  const { accept, refuse } = vectors("canonical_json");

  function canonical({ bytes, double, times = 1 }: Entry): string {
    const data =
      double === undefined
        ? parseJson(unhex(bytes.repeat(times)), 2 ** 20, "the file")
        : new DataView(Uint8Array.from(unhex(double)).buffer).getFloat64(0);
    return new TextDecoder().decode(canonicalJson(data));
  }

  test.each(numbered(accept))("accept %i", (_, entry) => {
    expect(canonical(entry)).toBe(entry.canonical);
  });

  test.each(numbered(refuse))("refuse %i", async (_, entry) => {
    expect(await refusal(() => canonical(entry))).toMatch(SAID[entry.reason] ?? /^$/);
  });

  test("longer bytes are refused before they are read", async () => {
    expect(parseJson(unhex("7b7d"), 2, "the file")).toEqual({});
    expect(await refusal(() => parseJson(unhex("7b7d20"), 2, "the file"))).toMatch(/has 3 bytes, must have at most 2/);
  });
});
