/** Axes: the cell of an item and of a client's coordinates, as the vectors say; both ways of loading; the policy. */

import { describe, expect, test } from "vitest";
import { campaignOf } from "../src/campaign/at-once.js";
import { openCampaign, TOOLS, type Form } from "../src/campaign/campaign.js";
import { Policy } from "../src/trust/policy.js";
import { coordinatesOf } from "../src/values/items.js";
import { strataOf } from "../src/values/strata.js";
import { openMaker } from "../src/making.js";
import { Answers } from "../src/store/answers.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { utf8 } from "../src/bytes.js";
import { vectors, type Entry } from "./vectors.js";

const { accept, refuse } = vectors("strata");
const strataFor = (axes: unknown, items: number) =>
  strataOf(TOOLS, { axes, dictionary: { items }, mechanismTerms: { name: "ais" } } as unknown as Form);

describe("vectors", () => {
  test.each(accept.map((entry) => [entry.items, entry.item, entry.by, entry] as const))("of %j, %j %j", (_, item, by, entry) => {
    expect(strataFor(entry.axes, entry.items).cellOf(item, by)).toBe(entry.cell);
  });

  test.each(refuse.map(({ axes }) => [axes]))("section %j is refused", (axes) => {
    expect(() => campaignOf({ ...fileOf("axes"), axes })).toThrow("axes");
  });
});

test("each cell has another number, and the last keeps its own", () => {
  const { cellOf, cells } = strataFor(accept.at(-1)?.axes, 100);
  const axes = accept.at(-1)?.axes.listed as { name: string; values: string[] }[];
  let strata: Record<string, string>[] = [{}];
  for (const { name, values } of axes) strata = strata.flatMap((by) => [...values, "other"].map((value) => ({ ...by, [name]: value })));
  const made = Array.from({ length: 101 }, (_, item) => strata.map((by) => cellOf(item, by))).flat();
  expect(made.length).toBe(cells);
  expect([...made].sort((one, other) => one - other)).toEqual(Array.from({ length: cells }, (_, number) => number));
  expect(made.at(-1)).toBe(cells - 1);
});

test("both ways of loading open a campaign with axes, and its mechanism counts cells", async () => {
  for (const campaign of [campaignOf(fileOf("axes")), await openCampaign(fileOf("axes"))]) {
    expect(campaign.mechanism?.domain).toBe(45);
    expect(campaign.strata?.cells).toBe(45);
  }
  expect((await openCampaign(fileOf("grr"))).strata).toBeUndefined();
});

test.each(["grr", "ss", "oue", "rappor", "apple-cms", "hcms", "gcms", "gcms-target", "hr", "olh", "ocms", "ocms-mse", "ais", "line"])(
  "%s has axes if it adds nothing up to a sketch and is of no mean",
  (name) => {
    const form = { axes: fileOf("axes").axes, dictionary: { items: 9 }, mechanismTerms: { name } } as unknown as Form;
    const refused = ["rappor", "apple-cms", "hcms", "gcms", "gcms-target", "line"].includes(name);
    if (refused) expect(() => strataOf(TOOLS, form)).toThrow("no sketch");
    else expect(strataOf(TOOLS, form).cells).toBe(90);
  },
);

test("nothing that all objects inherit is taken for a section", () => {
  Object.defineProperty(Object.prototype, "listed", { value: [{ name: "secret", values: ["x"] }], configurable: true });
  try {
    expect(() => campaignOf({ ...fileOf("axes"), axes: { key: "ab".repeat(32) } })).toThrow("axes");
  } finally {
    Reflect.deleteProperty(Object.prototype, "listed");
  }
});

test("coordinates are texts or numbers of the app itself", async () => {
  expect({ ...coordinatesOf({ version: 2.1, platform: "linux" }) }).toEqual({ version: "2.1", platform: "linux" });
  expect({ ...coordinatesOf({ version: " 2", Platform: "linux", platform: "mac os", channel: "ä" }) }).toEqual({ platform: "mac os" });
  for (const wrong of [new Map([["version", "2.1"]]), 7, "abc", ["x"], new Date()]) {
    expect(() => coordinatesOf(wrong as unknown as Record<string, string>)).toThrow("plain object");
  }
  expect(() => coordinatesOf({ version: null })).toThrow("must be a string or a number");
  const items = vectors("clients").accept.find(({ campaign }) => campaign === "axes")?.items as string[];
  const maker = await openMaker({
    campaign: await openCampaign(fileOf("axes")),
    policy: Policy.trusting(),
    signature: undefined,
    log: undefined,
    dictionary: utf8(items.map((item) => `${item}\n`).join("")),
    answers: new Answers(new MemoryStore()),
  });
  const lengths = await Promise.all([{}, { version: "2.1" }, { nothing: "x" }].map(async (by) => (await maker.report("one", by)).length));
  expect(new Set(lengths).size).toBe(1);
});

function fileOf(name: string): Entry {
  return vectors("campaigns").accept.find((entry) => entry.name === name)?.file;
}
