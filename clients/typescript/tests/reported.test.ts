/** What `report` returns: one word of a closed list for all that a person, a device or an operator does. */

import { readFile } from "node:fs/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Budget } from "../src/budget/budget.js";
import * as errors from "../src/errors.js";
import type { Reading } from "../src/sender/present.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { utf8 } from "../src/bytes.js";
import { bucketOf } from "../src/trust/installation.js";
import { BUCKETS } from "../src/trust/sample.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { eachBeginsAt, tab } from "./tabs.js";

const SECRET = "secret-value";

/** A sender whose next report is refused, by the word and the error of the refusal. */
const REFUSALS: Readonly<Record<Exclude<errors.Reported, "queued">, readonly [error: string, make: (strict: boolean) => Promise<Made>]>> = {
  not_asked: ["NotAsked", async (strict) => outside(strict)],
  over_cap: ["OverCap", async (strict) => after(tab({ strict }, new FakeCollector(), readingOf({ cap: 1 })))],
  budget_spent: [
    "BudgetSpent",
    async (strict) => {
      const store = new MemoryStore();
      return after(tab({ strict, store, budget: new Budget(store, { lifetime: 4, whenSpent: "nothing" }) }));
    },
  ],
  opted_out: [
    "OptedOut",
    async (strict) => {
      const made = await after(tab({ strict }));
      await made.sender.forget();
      return made;
    },
  ],
  queue_full: ["QueueFull", async (strict) => after(tab({ strict, mostQueued: 2 }))],
  not_yet: [
    "NotYet",
    async (strict) => {
      const made = tab({ strict });
      made.collector.online = false;
      return made;
    },
  ],
  untrusted: ["Untrusted", async (strict) => tab({ strict }, new FakeCollector(), { ...readingOf(), open: untrusted })],
  storage: [
    "StoreError",
    async (strict) => {
      const made = await after(tab({ strict }));
      vi.spyOn(made.store, "change").mockRejectedValue(new errors.StoreError("the device is full"));
      return made;
    },
  ],
};
type Made = ReturnType<typeof tab>;

eachBeginsAt(Date.parse("2026-11-23T12:00:00Z"));

const untrusted: Reading["open"] = () => Promise.reject(new errors.Untrusted("the campaign is unsigned"));

/** Return a sender whose installation is in bucket 1 of its layer, in a campaign that asks bucket 0. */
async function outside(strict: boolean): Promise<Made> {
  const made = tab({ strict }, new FakeCollector(), readingOf({ sample: { layer: "l", buckets: [[0, 1]] } }));
  const id = Array.from({ length: 100_000 }, (_, number) => number.toString(16).padStart(32, "0")).find((one) => bucketOf({ utf8, BUCKETS }, one, "l") === 1);
  await made.store.change([], () => ({ put: [["installation", { id: id ?? "", drawn: Date.now(), layers: {} }]], result: undefined }));
  return made;
}

/** Return the sender after one queued report. */
async function after(made: Made): Promise<Made> {
  expect(await made.sender.report("first")).toBe("queued");
  return made;
}

describe.each(Object.entries(REFUSALS))("%s", (word, [error, make]) => {
  let made: Made;

  beforeEach(async () => {
    made = await make(false);
  });

  test("is returned, counted, and explained without the value; nothing is thrown", async () => {
    const { sender } = made;
    expect(sender.dropped).toEqual({});
    expect(await Promise.all([sender.report(SECRET), sender.report(SECRET)])).toEqual([word, word]);
    expect(sender.dropped).toEqual({ [word]: 2 });
    const said = sender.log.filter(({ what }) => what === "not_queued");
    expect(said.map(({ reports }) => reports)).toEqual([0, 0]);
    expect(said[0]?.reason).toMatch(/^\w.* \w/);
    expect(JSON.stringify(sender.log)).not.toContain(SECRET);
  });

  test(`is ${error} with strict, and not counted`, async () => {
    const { sender } = await make(true);
    const thrown: unknown = await sender.report(SECRET).catch((each: unknown) => each);
    expect(thrown).toBeInstanceOf(errors.HushcountError);
    expect(thrown).toMatchObject({ name: error, word });
    expect(sender.dropped).toEqual({});
  });
});

test.each(["docs/adr/0048-the-first-hour.md", "clients/typescript/README.md"])("%s lists the words, the same for Python", async (path) => {
  const text = await readFile(new URL(`../../../${path}`, import.meta.url), "utf8");
  const words = ["queued", ...Object.keys(REFUSALS)];
  const list = path.endsWith("README.md") ? /\| word \|[^]*?\n\n/ : /a closed list \(([^)]*)\)/;
  expect([...(list.exec(text)?.[0] ?? "").matchAll(/`(\w+)`(?= \||[,)])/g)].map(([, word]) => word)).toEqual(words);
});

test("a damaged record of the budget is a matter of storage, and a key that is not valid now a matter of time", () => {
  expect(new errors.FormatError("damaged").word).toBe("storage");
  expect(new errors.NoValidKey("expired").word).toBe("not_yet");
});

test("who reads the counts cannot change them", async () => {
  const { sender } = await REFUSALS.queue_full[1](false);
  Object.assign(sender.dropped, { queue_full: 7 });
  await sender.report(SECRET);
  expect(sender.dropped).toEqual({ queue_full: 1 });
});

test("a spent budget that lets reports of other leave queues them", async () => {
  const store = new MemoryStore();
  const { sender } = tab({ store, budget: new Budget(store, { lifetime: 0 }) });
  expect([await sender.report("dark-mode"), sender.dropped]).toEqual(["queued", {}]);
});

test("a value that waits for a campaign file is queued", async () => {
  const { sender, collector } = tab({ keepValues: true });
  collector.online = false;
  expect([await sender.report("dark-mode"), sender.dropped]).toEqual(["queued", {}]);
});

test("a wrong type is a mistake of the programmer, and a fault of this package is no word", async () => {
  const { sender, store } = tab();
  await expect(sender.report(7n as never)).rejects.toThrow(errors.UsageError);
  vi.spyOn(store, "change").mockRejectedValue(new TypeError("a fault"));
  await expect(sender.report("dark-mode")).rejects.toThrow(TypeError);
  expect(sender.dropped).toEqual({});
});
