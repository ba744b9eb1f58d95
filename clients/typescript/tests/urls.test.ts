/** Addresses: the text that stands for a URL, as the vectors say, and hosts as the web platform's own tests have them. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { campaignOf } from "../src/campaign/at-once.js";
import { openCampaign, TOOLS, type Form } from "../src/campaign/campaign.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { loadAssigned } from "../src/values/unicode13.js";
import { itemOfUrl } from "../src/values/urls.js";
import { vectors, type Entry } from "./vectors.js";

const { accept, refuse } = vectors("urls");
const assigned = await loadAssigned();
const HOST = { url: { take: "host" } };

function itemOf({ url, most, text, hosts }: Entry): string {
  const form = { url, discoveryTerms: { isOblivious: true, maxValueBytes: most } };
  return itemOfUrl(TOOLS, form as unknown as Form)(text, assigned, hosts && new Set(hosts as string[]));
}

describe("vectors", () => {
  test.each(accept.map((entry) => [entry.text, entry] as const))("%j", (_, entry) => {
    expect(itemOf(entry)).toBe(entry.item);
  });

  test.each(refuse.filter(({ reason }) => reason === "other").map((entry) => [entry.text, entry] as const))("%j is other", (_, entry) => {
    expect(itemOf(entry)).toBe("");
  });

  test.each(refuse.filter(({ reason }) => reason === "url").map(({ url }) => [url]))("section %j is refused", (url) => {
    const file = { ...fileOf("paths"), url };
    expect(() => campaignOf(file)).toThrow("url");
  });
});

test("hosts of the web platform's tests are those of this engine's parser, or other", () => {
  const cases: any[] = JSON.parse(readFileSync(new URL("../../../tests/hushcount/wpt_urltestdata.json", import.meta.url), "utf8"));
  const given = cases.filter((one) => typeof one === "object" && one.base === null && /^\s*https?:/i.test(one.input));
  const item = itemOfUrl(TOOLS, HOST as unknown as Form);
  const told = given.map(({ input }) => [input, item(input, assigned, undefined)] as const).filter(([, host]) => host !== "");
  expect(given.length).toBeGreaterThan(200);
  expect(told.length).toBeGreaterThan(60);
  // A label in Punycode is taken as it is.
  for (const [input, host] of told.filter(([, found]) => !found.includes("xn--pokxncvks"))) {
    expect(new URL(input).hostname.replace(/\.$/, ""), input).toBe(host);
  }
});

test("both ways of loading open a campaign for addresses", async () => {
  const url = "https://www.Example.com/a?b#c";
  for (const campaign of [campaignOf(fileOf("hosts")), await openCampaign(fileOf("hosts"))]) {
    expect(campaign.itemOfUrl?.(url, assigned, undefined)).toBe("www.example.com");
  }
  expect((await openCampaign(fileOf("sites"))).itemOfUrl?.(url, assigned, undefined)).toBe("example.com");
  expect((await openCampaign(fileOf("grr"))).itemOfUrl).toBeUndefined();
});

test("a policy names the hosts of paths, and of these only", async () => {
  const { policy } = vectors("policies").accept.find(({ policy: { hosts } }) => hosts?.length === 2) as Entry;
  const terms = Policy.parse(policy, new Newest(new MemoryStore()));
  expect(terms.hostsFor(await openCampaign(fileOf("paths")))).toEqual(new Set(policy.hosts));
  expect(terms.hostsFor(await openCampaign(fileOf("hosts")))).toBeUndefined();
  expect(Policy.trusting().hostsFor(await openCampaign(fileOf("paths")))).toBeUndefined();
});

function fileOf(name: string): any {
  return vectors("campaigns").accept.find((entry) => entry.name === name)?.file;
}
