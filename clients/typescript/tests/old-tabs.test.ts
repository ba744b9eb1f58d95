/** Tabs that slept, or were in the browser's cache of pages: what they remember of the store may be long gone. */

import { beforeEach, expect, test, vi } from "vitest";
import { Budget } from "../src/budget/budget.js";
import { LEASE } from "../src/sender/queue.js";
import { clientTokens } from "../src/sender/token.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Entry, Outcome, Wanted } from "../src/store/store.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { closeTabs, eachBeginsAt, stubPage, tab } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const DAY = 86_400_000;
const DELAY = 600_000;
const VALUES = ["one", "two", "three"];

/** A store that may let time pass for one tab, after a step and before its result is heard of. */
class Sleepy extends MemoryStore {
  after: (outcome: Outcome<unknown>) => Promise<void> = () => Promise.resolve();

  override async change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    let outcome: Outcome<Result> | undefined;
    const result = await super.change(wanted, (found) => (outcome = step(found)));
    await this.after(outcome as unknown as Outcome<unknown>);
    return result;
  }
}

/** Return whether a step claimed reports, or put them under other keys of the queue. */
function isClaim({ put = [], remove = [] }: Outcome<unknown>): boolean {
  return remove.length > 0 && put.some(([key]) => key.startsWith("queue/"));
}

let page: EventTarget;

eachBeginsAt(START);

beforeEach(() => {
  page = stubPage();
});

/** Let the one page that was started go, and wait for what it does then. */
async function leave(): Promise<void> {
  page.dispatchEvent(new Event("pagehide"));
  await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Two tabs of one store: an old one with reports of three values, which runs if the delay is not 0, and a new one that does not run yet. */
async function twoTabs(store = new MemoryStore(), delaySeconds = DELAY / 1000) {
  const collector = new FakeCollector();
  const reading = readingOf({ streams: ["reports"] });
  const old = tab({ store, delaySeconds }, collector, reading).sender;
  // A tab that runs without delay sends in its own time, and a test would race it.
  if (delaySeconds > 0) old.start();
  const other = tab({ store, delaySeconds }, collector, reading).sender;
  await Promise.all(VALUES.map((value) => old.report(value)));
  return { store, collector, old, other };
}

const ONCE = [...VALUES].sort().map((value) => `reports ${value}`);

test("a tab that is left young sends what it queued", async () => {
  const { collector, other } = await twoTabs();
  await leave();
  expect(collector.arrived).toEqual(ONCE);
  vi.setSystemTime(START + DAY);
  expect((await other.deliver(true)).sent).toBe(0);
});

test("a tab that slept while another one delivered posts nothing again", async () => {
  for (const early of [false, true]) {
    for (const slept of [LEASE, DAY, 3 * DAY, 300 * DAY]) {
      const { collector, other } = await twoTabs(new MemoryStore(), 86_400);
      // The old tab knows by now how long it waits.
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (!early) vi.setSystemTime(Date.now() + DAY);
      expect((await other.deliver(early)).sent).toBe(3);
      vi.setSystemTime(Date.now() + slept);
      await leave();
      expect([early, slept, collector.arrived]).toEqual([early, slept, ONCE]);
      closeTabs();
    }
  }
});

test("a tab whose clock is set back does not take what it remembers for young", async () => {
  const { collector, other } = await twoTabs();
  vi.setSystemTime(START + DAY);
  await other.deliver();
  vi.setSystemTime(START - DAY);
  await leave();
  expect(collector.arrived).toEqual(ONCE);
});

test("a tab that lives asks the store each minute, and sends what is still there and not due when it is left", async () => {
  vi.useRealTimers();
  vi.useFakeTimers({ now: START, toFake: ["Date", "setTimeout", "clearTimeout"], shouldAdvanceTime: true, advanceTimeDelta: 1 });
  const { collector, old, other } = await twoTabs(new MemoryStore(), 86_400);
  await vi.advanceTimersByTimeAsync(10 * LEASE);
  await leave();
  expect(collector.arrived).toEqual(ONCE);
  await old.report("four");
  await other.deliver(true);
  await vi.advanceTimersByTimeAsync(61_000);
  await leave();
  expect(collector.arrived.filter((text) => text === "reports four").length).toBe(1);
});

test("a tab that slept between its claim and its post claims anew", async () => {
  const store = new Sleepy();
  const { collector, old, other } = await twoTabs(store, 0);
  let slept = false;
  store.after = async (outcome) => {
    if (slept || !isClaim(outcome)) return;
    slept = true;
    vi.setSystemTime(Date.now() + 3 * DAY);
    expect((await other.deliver()).sent).toBe(3);
    vi.setSystemTime(Date.now() + 3 * DAY);
  };
  expect((await old.deliver()).sent).toBe(0);
  expect(slept).toBe(true);
  expect(collector.arrived).toEqual(ONCE);
});

test("a claim is used in its first half only: the second is for the request", async () => {
  for (const [slept, posts] of [[LEASE / 2 - 1, 1], [LEASE / 2, 0]] as const) {
    const store = new Sleepy();
    const { collector, old } = await twoTabs(store, 0);
    let once = true;
    store.after = (outcome) => {
      if (once && isClaim(outcome)) {
        once = false;
        vi.setSystemTime(Date.now() + slept);
      }
      return Promise.resolve();
    };
    await old.deliver();
    expect([slept, collector.posts.length]).toEqual([slept, posts]);
    vi.setSystemTime(Date.now() + LEASE);
    await old.deliver();
    expect(collector.arrived).toEqual(ONCE);
  }
});

test("a tab that slept before it noted what it had queued does not send it as it is left", async () => {
  const store = new Sleepy();
  const { collector, old, other } = await twoTabs(store);
  await leave();
  let once = true;
  store.after = async ({ put = [], remove = [] }) => {
    if (!once || remove.length > 0 || !put.some(([key]) => key.startsWith("queue/"))) return;
    once = false;
    vi.setSystemTime(Date.now() + LEASE);
    await other.deliver(true);
  };
  await old.report("four");
  vi.setSystemTime(Date.now() + 3 * DAY);
  await leave();
  expect(once).toBe(false);
  expect(collector.arrived.filter((text) => text === "reports four").length).toBe(1);
});

test("a tab posts with the token that the store has now", async () => {
  const { store, collector, old, other } = await twoTabs();
  const before = await clientTokens(store, "features");
  await other.forget();
  await new Budget(store).optIn();
  await other.report("new");
  await old.report("newer");
  await old.deliver(true);
  const after = await clientTokens(store, "features");
  const [was, is] = [before, after].map((tokens) => tokens.shown("collector", "one", Math.floor(Date.now() / DAY) * DAY)?.["Client-Token"]);
  expect(is).not.toBe(was);
  expect(new Set(collector.posts.map(({ token }) => token))).toEqual(new Set([is]));
});
