/** Numbers: texts of doubles and bins as the vectors say, and a sender that takes a number as Python's does. */

import { describe, expect, test } from "vitest";
import { openCampaign, TOOLS, type Form } from "../src/campaign/campaign.js";
import { campaignOf } from "../src/campaign/at-once.js";
import { UsageError } from "../src/errors.js";
import { binOf } from "../src/values/numbers.js";
import { textOfValue } from "../src/values/items.js";
import { vectors } from "./vectors.js";

const CAMPAIGNS = vectors("campaigns").accept;

function fileOf(name: string): any {
  return CAMPAIGNS.find((entry: any) => entry.name === name)?.file;
}

/** Return the bins of edges, in a campaign file whose dictionary the check is told to believe. */
function binsOf(edges: readonly string[], unit: string): (text: string) => string {
  const form = { number: { edges, unit }, mechanismTerms: {}, dictionary: { items: edges.length + 1, digest: "believed" } };
  return binOf({ ...TOOLS, hex: () => "believed" }, form as unknown as Form);
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

  test.each(refuse)("$text is no number", ({ edges, unit, text }) => {
    expect(binsOf(edges, unit)(text)).toBe("");
  });
});

test("a campaign file with numbers is opened by both ways of loading", async () => {
  for (const campaign of [campaignOf(fileOf("number")), await openCampaign(fileOf("number"))]) {
    expect(campaign.binOf?.("312.5")).toBe("300 ms or more");
    expect(campaign.binOf?.("slow")).toBe("");
  }
  expect((await openCampaign(fileOf("grr"))).binOf).toBeUndefined();
});

test.each([{ discovery: fileOf("both").discovery }, { number: null }, { number: { edges: ["2"], unit: "ms", more: 1 } }])(
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
