/** Numbers: texts of doubles and bins as the vectors say, and a sender that takes a number as Python's does. */

import { describe, expect, test } from "vitest";
import { openCampaign, TOOLS, type Form } from "../src/campaign/campaign.js";
import { campaignOf } from "../src/campaign/at-once.js";
import { UsageError } from "../src/errors.js";
import { systemWords } from "../src/maths/words.js";
import { itemOfNumber } from "../src/values/numbers.js";
import { textOfValue } from "../src/values/items.js";
import { vectors } from "./vectors.js";

const CAMPAIGNS = vectors("campaigns").accept;

function fileOf(name: string): any {
  return CAMPAIGNS.find((entry: any) => entry.name === name)?.file;
}

/** Return the bins of edges, in a campaign file whose dictionary the check is told to believe. */
function binsOf(edges: readonly string[], unit: string): (text: string) => string | bigint {
  const form = { number: { edges, unit, mean: false }, mechanismTerms: {}, dictionary: { items: edges.length + 1, digest: "believed" } };
  const item = itemOfNumber({ ...TOOLS, hex: () => "believed" }, form as unknown as Form);
  return (text) => item(text, systemWords);
}

describe("vectors", () => {
  const { accept, refuse } = vectors("numbers");
  const of = (rule: string): any[] => accept.filter((entry: any) => entry.rule === rule);

  test.each(of("text"))("the text of $double is $text", ({ double, text }) => {
    const number = new DataView(Uint8Array.from(double.match(/../g).map((octet: string) => parseInt(octet, 16))).buffer).getFloat64(0);
    expect(textOfValue(number)).toBe(text);
  });

  test.each(of("names"))("the names of $edges", ({ edges, unit, names }) => {
    const bin = binsOf(edges, unit);
    expect(["-1e300", ...edges].map((edge: string) => bin(edge))).toEqual(names);
  });

  test.each(of("bin"))("$text is in $bin", ({ edges, unit, text, bin }) => {
    expect(binsOf(edges, unit)(text)).toBe(bin);
  });

  test.each(of("point"))("$text on a line from $edges is point $item of $points", ({ edges, points, text, word, item }) => {
    const drawn = BigInt(`0x${String(word)}`);
    const words = Uint32Array.of(Number(drawn & 0xffffffffn), Number(drawn >> 32n));
    const terms = { name: "line", parameters: { m: points } };
    const form = { number: { edges, unit: "", mean: true }, mechanismTerms: terms, dictionary: { items: 1, digest: "believed" } };
    const point = itemOfNumber({ ...TOOLS, hex: () => "believed" }, form as unknown as Form)(text, () => words);
    expect(point).toBe(BigInt(item));
  });

  test.each(refuse)("$text is no number", ({ edges, unit, text }) => {
    expect(binsOf(edges, unit)(text)).toBe("");
  });
});

test("a campaign file with numbers is opened by both ways of loading", async () => {
  for (const campaign of [campaignOf(fileOf("number")), await openCampaign(fileOf("number"))]) {
    expect(campaign.itemOfNumber?.("312.5", systemWords)).toBe("300 ms or more");
    expect(campaign.itemOfNumber?.("slow", systemWords)).toBe("");
  }
  expect((await openCampaign(fileOf("grr"))).itemOfNumber).toBeUndefined();
});

test.each([{ discovery: fileOf("both").discovery }, { number: null }, { number: { edges: ["2"], unit: "ms", mean: false, more: 1 } }])(
  "a section on numbers has its form: %j",
  async (patch) => {
    const file = { ...fileOf("number"), ...patch };
    expect(() => campaignOf(file)).toThrow("number");
    await expect(openCampaign(file)).rejects.toThrow("number");
  },
);

test.each([true, null, undefined, {}, 5n])("%s is neither text nor number", (value) => {
  expect(() => textOfValue(value)).toThrow(UsageError);
});
