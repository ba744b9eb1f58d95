/** Whatever the clocks show, a sender charges what counts, as Python's: both are held to one table of cases. */

import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { MemoryStore } from "../src/store/memory-store.js";
import { FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { eachBeginsAt, tab } from "./tabs.js";

/** A step is of a page of its own; times are hours after the start, as the table says. */
interface Step {
  readonly device: number;
  readonly collector?: number;
  readonly date?: number | string | null;
  readonly answer?: "takes" | "fails" | "page";
  readonly do: "report" | "deliver";
  readonly is?: "made" | "over_cap";
  readonly sent?: number;
}
interface Case {
  readonly name: string;
  readonly cap: number;
  readonly charged: number;
  readonly steps: readonly Step[];
}
const TABLE = new URL("../../../tests/hushcount/delivery/clocks.json", import.meta.url);
const { start, cases }: { readonly start: string; readonly cases: readonly Case[] } = JSON.parse(readFileSync(TABLE, "utf8"));
const START = Date.parse(start);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

eachBeginsAt(START);

/** Return the `Date` of a step; empty if there is none. */
function dateOf({ device, collector = device, date = collector }: Step): string {
  return typeof date === "number" ? new Date(START + date * HOUR).toUTCString() : (date ?? "");
}

/** Return what the collector answers to a post in a step. */
function answerOf(step: Step): Response {
  const { answer = "takes" } = step;
  const said = dateOf(step);
  const headers: Record<string, string> = said === "" ? {} : { Date: said };
  if (answer === "fails") return refusal(503, "queue_full", headers);
  return answer === "page" ? new Response("<html>", { headers }) : new Response(null, { status: 202, headers });
}

/** Return the outcomes of the steps, the values that were charged, and those that the cap of the shuffler drops. */
async function run({ cap, steps }: Case): Promise<readonly [readonly (string | number)[], number, number]> {
  const [store, collector, reading] = [new MemoryStore(), new FakeCollector(), readingOf({ cap })];
  const windows = new Map<number, number>();
  const outcomes: (string | number)[] = [];
  let charged = 0;
  for (const step of steps) {
    const before = collector.arrived.length;
    vi.setSystemTime(START + step.device * HOUR);
    collector.answer = () => answerOf(step);
    collector.date = dateOf(step);
    collector.now = step.date === undefined ? START + (step.collector ?? step.device) * HOUR : Infinity;
    const { sender } = tab({ store }, collector, reading);
    if (step.do === "deliver") outcomes.push((await sender.deliver()).sent / 2);
    else {
      const word = await sender.report("one");
      outcomes.push(word === "queued" ? "made" : word);
    }
    const window = Math.floor((START + (step.collector ?? step.device) * HOUR) / DAY);
    windows.set(window, (windows.get(window) ?? 0) + (collector.arrived.length - before) / 2);
    const { streams } = await sender.spent();
    charged = streams[0]?.reports ?? 0;
    expect(streams.map(({ reports }) => reports)).toEqual(streams.map(() => charged));
    sender.close();
  }
  const dropped = [...windows.values()].reduce((sum, number) => sum + Math.max(0, number - cap), 0);
  return [outcomes, charged, dropped];
}

describe("what is charged counts", () => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, each) => {
    expect(await run(each)).toEqual([each.steps.map(({ is, sent }) => is ?? sent), each.charged, 0]);
  });
});
