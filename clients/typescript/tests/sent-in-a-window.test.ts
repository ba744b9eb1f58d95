/** What the collectors take of a client's stream in one window is at most the cap, under all tokens, whatever happens. */

import { beforeEach, describe, expect, test, vi } from "vitest";
import { startsOf } from "../src/budget/starts.js";
import { Arrivals } from "../src/sender/arrivals.js";
import { LEASE, Queue, type Claimed, type Waiting } from "../src/sender/queue.js";
import type { WindowTerms } from "../src/trust/asked.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { FakeCollector, momentOf, readingOf, refusal } from "./fake-maker.js";
import { closeTabs, eachBeginsAt, stubPage, tab } from "./tabs.js";

const MIDNIGHT = Date.parse("2026-11-24T00:00:00Z");
const SECOND = 1000;
const DAY = 86_400_000;

eachBeginsAt(MIDNIGHT - SECOND);

let store: MemoryStore;
let queue: Queue;
let arrivals: Arrivals;

beforeEach(() => {
  store = new MemoryStore();
  queue = new Queue(store, "c", 500);
  arrivals = new Arrivals(store, "c", () => startsOf(DAY));
});

/** Queue reports, as tabs do that saw room at the same moment. */
async function put(number: number, cap: number): Promise<void> {
  const waiting = Array.from({ length: number }, (): Waiting => {
    const body = new Uint8Array(8);
    return { fingerprint: "f", stream: "reports", body, due: Date.now(), collector: "one", cap };
  });
  await queue.put(waiting);
}

async function claim(reports = 128): Promise<Claimed | undefined> {
  await arrivals.read();
  return queue.claim(Date.now(), { reports, bytes: 1e6 }, true, true, arrivals.turns()());
}

/** Return what a tab claims, and what it gives up. */
function numbers(claimed: Claimed | undefined): readonly [number, number] | undefined {
  return claimed && [claimed.reports.length, claimed.over];
}

const keysOf = (claimed: Claimed | undefined): string[] => (claimed?.reports ?? []).map(({ key }) => key);

describe("in one window", () => {
  test("what has no room is given up, of many reports too", async () => {
    await put(300, 2);
    expect(numbers(await claim())).toEqual([2, 126]);
    expect(numbers(await claim())).toEqual([0, 128]);
    expect(numbers(await claim())).toEqual([0, 44]);
    expect(await claim()).toBe(undefined);
  });

  test("a report that may arrive in the next window has its place there", async () => {
    await put(2, 1);
    expect(numbers(await claim(1))).toEqual([1, 0]);
    vi.setSystemTime(MIDNIGHT + SECOND);
    expect(numbers(await claim())).toEqual([0, 1]);
    // The tab was killed: the same bytes go again, under the same token, and count in the window too.
    vi.setSystemTime(MIDNIGHT + LEASE);
    const again = await claim();
    expect(numbers(again)).toEqual([1, 0]);
    expect(again?.of.window).toBe(MIDNIGHT - DAY);
    expect(await arrivals.settled(keysOf(again), Date.now(), true)).toBe(1);
    await put(1, 1);
    expect(numbers(await claim())).toEqual([0, 1]);
  });

  test.each([
    ["was refused", false],
    ["arrived", true],
  ])("a report that %s in the next window counts there, and not in its own", async (_, took) => {
    await put(1, 1);
    const claimed = await claim();
    vi.setSystemTime(MIDNIGHT + SECOND);
    expect(await arrivals.settled(keysOf(claimed), Date.now(), took)).toBe(1);
    await put(1, 1);
    expect(numbers(await claim())).toEqual([0, 1]);
    vi.setSystemTime(MIDNIGHT + DAY);
    await put(1, 1);
    expect(numbers(await claim())).toEqual([1, 0]);
  });

  test("what left with a page that lives on keeps its token, and counts", async () => {
    await put(1, 1);
    const [key = ""] = await store.change([{ prefix: "queue/", most: 9 }], ([found = []]) => ({ result: found.map(([each]) => each) }));
    await arrivals.attempted([key], MIDNIGHT - DAY);
    vi.setSystemTime(MIDNIGHT + SECOND);
    await put(1, 1);
    const again = await claim(1);
    expect([numbers(again), again?.of.window]).toEqual([[1, 0], MIDNIGHT - DAY]);
    expect(numbers(await claim())).toEqual([0, 1]);
  });
});

const FATES = ["answered", "answered", "answered", "answered", "answer lost", "request lost", "refused", "page", "too long", "busy", "closed"] as const;
const JUMPS = [SECOND, 301 * SECOND, DAY / 2, DAY, 2 * DAY, 400 * DAY];
const WAITS = [SECOND, 301 * SECOND, DAY / 4, DAY / 2, DAY - 100 * SECOND];

/** Return a number below `most` each time, the same ones for a seed. */
function chanceOf(seed: number): (most: number) => number {
  let state = seed + 1;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** Windows as a campaign lists them: days of Berlin. */
const LISTED = { unit: "day", starts: Array.from({ length: 120 }, (_, day) => (MIDNIGHT + (day - 2) * DAY) / 1000 - 3600) };

/** Return by how many reports a window of a collector exceeds the cap at most, and how many were taken. */
async function history(seed: number, refuses = true, listed?: WindowTerms, known?: WindowTerms): Promise<readonly [number, number]> {
  const own = new MemoryStore();
  const chance = chanceOf(seed);
  const among = <Item>(items: readonly Item[]): Item => items[chance(items.length)] as Item;
  let [now, wrong] = [MIDNIGHT, 0];
  const cap = 1 + chance(3);
  const [collector, reading, page] = [new FakeCollector(), readingOf({ streams: ["reports"], cap, windows: known }), stubPage()];
  const notes = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    get length() { return notes.size; },
    key: (place: number) => [...notes.keys()][place] ?? null,
    getItem: (name: string) => notes.get(name) ?? null,
    setItem: (name: string, text: string) => notes.set(name, text),
    removeItem: (name: string) => notes.delete(name),
  });
  const taken = new Map<number, Set<string>>();
  const tokens = new Map<string, string>();
  const pass = (time: number): void => void vi.setSystemTime((now += time) + wrong);
  const setClock = (): void => {
    if (chance(8) === 0) wrong = (chance(3) === 0 ? wrong : 0) + (chance(3) - 1) * among(JUMPS);
    pass(0);
  };
  const answer = (url: string, init: RequestInit, fate: (typeof FATES)[number]): Response | undefined => {
    const [{ searchParams }, at] = [new URL(url), now + among([0, 3 * SECOND])];
    const texts = Array.from({ length: (init.body as Uint8Array).length / 64 }, (_, row) => String((init.body as Uint8Array).subarray(64 * row, 64 * row + 64)));
    const token = new Headers(init.headers).get("client-token") ?? "";
    for (const text of texts) {
      expect(tokens.get(text) ?? token).toBe(token);
      tokens.set(text, token);
    }
    const headers = { Date: new Date(at).toUTCString() };
    if (fate === "request lost") return undefined;
    if (fate === "page") return new Response("<html>", { status: 403 });
    if (fate === "too long") return new Response("", { status: 413 });
    if (refuses && momentOf(searchParams.get("window")) > at) return refusal(425, "window_not_begun", headers);
    const until = searchParams.get("until");
    if (until !== null && at > momentOf(until)) return refusal(409, "window_over", headers);
    if (fate === "busy") return refusal(503, "queue_full", headers);
    if (fate === "refused") return refusal(400, "wrong_length", headers);
    if (fate === "closed") {
      collector.epoch += 1;
      return refusal(409, "epoch_closed", headers);
    }
    const window = startsOf(DAY, { windows: listed }).at(at);
    taken.set(window, new Set([...(taken.get(window) ?? []), ...texts]));
    return fate === "answered" ? new Response(null, { status: 202, headers }) : undefined;
  };
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    collector.date = new Date(now).toUTCString();
    if (init.method === "GET") return collector.fetch(url, init);
    if (init.keepalive === true) {
      answer(url, init, among(["answered", "request lost"]));
      return new Promise(() => undefined);
    }
    pass(among([0, SECOND, 60 * SECOND]));
    const said = answer(url, init, among(FATES));
    pass(among([0, SECOND, 60 * SECOND]));
    setClock();
    if (said === undefined) throw new TypeError("no answer");
    return said;
  };
  const given = { store: own, fetch, delaySeconds: 600, keepValues: chance(2) === 0 };
  pass(0);
  for (let step = 0; step < 60; step += 1) {
    setClock();
    const { sender } = tab(given, collector, reading);
    const other = tab(given, collector, reading).sender;
    const what = chance(8);
    // The campaign file comes, with the collector's time.
    if (chance(5) === 0) await new Arrivals(own, "features", () => startsOf(DAY, { windows: known })).heard(now);
    if (what < 2) pass(among(WAITS));
    else if (what < 4) await Promise.all([sender.report("a"), other.report("b")]);
    else if (what === 4) {
      await sender.start().report("c");
      page.dispatchEvent(new Event("pagehide"));
      await new Promise((resolve) => setTimeout(resolve, 1));
    } else await sender.deliver(true);
    await own.change([], () => ({ remove: ["hold/features"], result: undefined }));
    closeTabs();
  }
  const most = [...taken.values()].map(({ size }) => size);
  return [Math.max(0, ...most) - cap, most.reduce((sum, each) => sum + each, 0)];
}

describe("whatever clocks and networks do", () => {
  const few = { ...LISTED, starts: LISTED.starts.slice(0, 8) };
  test.each([
    ["counted from 1970", undefined, undefined],
    ["listed", LISTED, LISTED],
    ["listed for some days", LISTED, few],
  ])("at most the cap is taken in a window: %s", { timeout: 60_000 }, async (_, listed, known) => {
    let total = 0;
    for (let seed = 0; seed < 25; seed += 1) {
      const [over, number] = await history(seed, true, listed, known);
      expect([seed, Math.max(0, over)]).toEqual([seed, 0]);
      total += number;
    }
    expect(total).toBeGreaterThan(30);
  });

  test("the search sees a client that counts other windows", { timeout: 60_000 }, async () => {
    let over = 0;
    for (let seed = 0; seed < 200 && over <= 0; seed += 1) [over] = await history(seed, true, LISTED, undefined);
    expect(over).toBeGreaterThan(0);
  });

  test("the search sees a collector that takes reports before their window", { timeout: 60_000 }, async () => {
    let over = 0;
    for (let seed = 0; seed < 200 && over <= 0; seed += 1) [over] = await history(seed, false);
    expect(over).toBeGreaterThan(0);
  });
});
