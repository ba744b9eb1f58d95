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
    const { cells, cellOf, stratumOf } = strataFor(entry.axes, entry.items);
    expect(cells === undefined ? item : cellOf(item, by)).toBe(entry.cell);
    const [low, high] = stratumOf(by);
    expect((low ?? 0) + 256 * (high ?? 0)).toBe(entry.stratum);
  });

  test.each(refuse.map(({ axes }) => [axes]))("section %j is refused", (axes) => {
    expect(() => campaignOf({ ...fileOf("axes"), axes })).toThrow("axes");
  });
});

test("each cell has another number, and the last keeps its own", () => {
  const section = accept.find(({ axes }) => axes.listed.length === 3)?.axes;
  const { cellOf, cells } = strataFor(section, 100);
  const axes = section.listed as { name: string; values: string[] }[];
  let strata: Record<string, string>[] = [{}];
  for (const { name, values } of axes) strata = strata.flatMap((by) => [...values, "other"].map((value) => ({ ...by, [name]: value })));
  const made = Array.from({ length: 101 }, (_, item) => strata.map((by) => cellOf(item, by))).flat();
  expect(made.length).toBe(cells);
  expect([...made].sort((one, other) => one - other)).toEqual(made.map((_, number) => number));
  expect(made.at(-1)).toBe(made.length - 1);
});

test("both ways of loading open a campaign with axes, and its mechanism counts cells", async () => {
  for (const campaign of [campaignOf(fileOf("axes")), await openCampaign(fileOf("axes"))]) {
    expect(campaign.mechanism?.domain).toBe(45);
    expect(campaign.strata?.cells).toBe(45);
  }
  expect((await openCampaign(fileOf("grr"))).strata).toBeUndefined();
  const told = await openCampaign(fileOf("public-axes"));
  expect([told.mechanism?.domain, told.strata?.cells, told.strata?.stratumBytes]).toEqual([10, 10, 2]);
  expect(told.sealedBytes("reports")).toBe(2 + 64 + (told.mechanism?.reportBytes ?? 0));
});

test.each(["grr", "ss", "oue", "rappor", "apple-cms", "hcms", "gcms", "gcms-target", "hr", "olh", "ocms", "ocms-mse", "ais", "line"])(
  "%s has axes if it adds nothing up to a sketch and is of no mean",
  (name) => {
    const form = { axes: fileOf("axes").axes, dictionary: { items: 9 }, mechanismTerms: { name } } as unknown as Form;
    const refused = ["rappor", "apple-cms", "hcms", "gcms", "gcms-target", "line"].includes(name);
    if (refused) expect(() => strataOf(TOOLS, form)).toThrow("without a sketch");
    else expect(strataOf(TOOLS, form).cells).toBe(90);
    const listed = fileOf("axes").axes.listed.map((axis: Entry) => ({ ...axis, public: true }));
    const told = { ...form, axes: { ...fileOf("axes").axes, listed } } as Form;
    if (refused && name !== "line") expect(() => strataOf(TOOLS, told)).toThrow("without a sketch");
    else expect(strataOf(TOOLS, told)).toMatchObject({ cells: undefined, stratumBytes: 2 });
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

test("a report tells its public stratum whatever its value, also if the budget is spent", async () => {
  const campaign = await openCampaign(fileOf("public-axes"));
  const items = vectors("clients").accept.find((entry) => entry.campaign === "public-axes")?.items as string[];
  const dictionary = utf8(items.map((item) => `${item}\n`).join(""));
  const given = { signature: undefined, log: undefined, answers: new Answers(new MemoryStore()) };
  const maker = await openMaker({ campaign, policy: Policy.trusting(), dictionary, ...given });
  for (const value of ["one", "nobody's", "", null]) {
    const report = await maker.report(value, { version: "2.0", channel: "beta" });
    expect([report.length, report[0], report[1]]).toEqual([campaign.sealedBytes("reports"), 2, 0]);
  }
});

function fileOf(name: string): Entry {
  return vectors("campaigns").accept.find((entry) => entry.name === name)?.file;
}
