/** Reports that leave with a page which hears no answer: the next page sends them again only where they count once. */

import fc from "fast-check";
import { beforeEach, expect, test, vi } from "vitest";
import { startsOf } from "../src/budget/starts.js";
import type { SenderOptions } from "../src/sender/options.js";
import { Arrivals } from "../src/sender/arrivals.js";
import { Leaving } from "../src/sender/leaving.js";
import type { Sender } from "../src/sender/sender.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { FakeCollector, readingOf, refusal, TOKENS } from "./fake-maker.js";
import { closeTabs, eachBeginsAt, stubPage, tab } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The part of `localStorage` that is used; the browser tests run with the real one. */
class Notes {
  readonly items = new Map<string, string>();
  get length(): number {
    return this.items.size;
  }
  key(place: number): string | null {
    return [...this.items.keys()][place] ?? null;
  }
  getItem(name: string): string | null {
    return this.items.get(name) ?? null;
  }
  setItem(name: string, text: string): void {
    this.items.set(name, text);
  }
  removeItem(name: string): void {
    this.items.delete(name);
  }
}

let page: EventTarget;
let notes: Notes;

eachBeginsAt(START);

beforeEach(() => {
  page = stubPage();
  notes = new Notes();
  vi.stubGlobal("localStorage", notes);
});

/** A device with one store, and a collector; `hears` says whether a page that goes hears the collector's answer. */
function deviceOf(given: Partial<SenderOptions> = {}, cap = 1000) {
  const [store, collector, reading] = [new MemoryStore(), new FakeCollector(), readingOf({ streams: ["reports"], cap })];
  const device = { store, collector, hears: false, arrives: true, open, visit };
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const leaves = init.keepalive === true;
    if (leaves && !device.arrives) return device.hears ? Promise.reject(new TypeError("no network")) : new Promise(() => undefined);
    const answer = await collector.fetch(url, init);
    return leaves && !device.hears ? new Promise(() => undefined) : answer;
  };
  function open(): Sender {
    return tab({ store, delaySeconds: 600, fetch, ...given }, collector, reading).sender;
  }
  /** Report values in a page that is then left. */
  async function visit(...values: string[]): Promise<Sender> {
    const sender = open().start();
    await Promise.all(values.map((value) => sender.report(value)));
    page.dispatchEvent(new Event("pagehide"));
    await new Promise((resolve) => setTimeout(resolve, 5));
    sender.close();
    return sender;
  }
  return device;
}

const posted = ({ posts }: FakeCollector): string[] => posts.flatMap(({ texts }) => texts);

test("the next page sends again only in the same window", async () => {
  const cases: readonly (readonly [number, number])[] = [[0, 2], [12 * HOUR - 1, 2], [12 * HOUR, 0], [3 * DAY, 0], [300 * DAY, 0], [-1, 2], [-DAY, 0], [-300 * DAY, 0]];
  for (const [later, again] of cases) {
    vi.setSystemTime(START);
    const { collector, visit, open } = deviceOf();
    await visit("one", "two");
    vi.setSystemTime(START + later);
    const { sent, dropped, waiting } = await open().deliver(true);
    expect([later, sent, { ...dropped }, waiting]).toEqual([later, again, again > 0 ? {} : { left_with_page: 2 }, 0]);
    expect([posted(collector).length, new Set(posted(collector)).size, notes.length]).toEqual([2 + again, 2, 0]);
  }
});

test("a report that left and is sent again is given up in the next window, also if it did not arrive", async () => {
  const device = deviceOf();
  const { collector, visit, open } = device;
  device.arrives = false;
  await visit("one");
  expect((await open().deliver(true)).sent).toBe(1);
  expect(collector.arrived).toEqual(["reports one"]);
  await visit("two");
  collector.answer = () => refusal(503, "queue_full");
  vi.setSystemTime(START + HOUR);
  expect(await open().deliver(true)).toMatchObject({ sent: 0, waiting: 1 });
  collector.answer = () => new Response(null, { status: 202 });
  vi.setSystemTime(START + DAY);
  expect({ ...(await open().deliver(true)).dropped }).toEqual({ left_with_page: 1 });
  expect(collector.arrived).toEqual(["reports one"]);
});

test("a page that goes is told that its requests failed, though they arrive, and keeps its notes", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const answer = await collector.fetch(url, init);
    if (init.keepalive === true) throw new TypeError("the page goes");
    return answer;
  };
  const sender = tab({ store, fetch, delaySeconds: 600 }, collector).sender.start();
  await sender.report("one");
  // Its next task never comes.
  const timers = vi.spyOn(globalThis, "setTimeout").mockImplementation(() => 0 as never);
  page.dispatchEvent(new Event("pagehide"));
  for (let step = 0; step < 200; step += 1) await Promise.resolve();
  timers.mockRestore();
  expect([notes.length, posted(collector).length]).toEqual([2, 2]);
  vi.setSystemTime(START + DAY);
  const next = tab({ store, delaySeconds: 600 }, collector).sender;
  expect({ ...(await next.deliver(true)).dropped }).toEqual({ left_with_page: 2 });
});

test("what did not leave is sent whenever the next page comes", async () => {
  const { collector, open, visit } = deviceOf();
  const killed = open().start();
  await killed.report("killed");
  killed.close();
  await visit("left");
  vi.setSystemTime(START + 3 * DAY);
  expect(await open().deliver()).toMatchObject({ sent: 1, dropped: { left_with_page: 1 }, waiting: 0 });
  expect(collector.arrived).toEqual(["reports killed", "reports left"]);
});

test("a page that lives on goes by the answer", async () => {
  for (const arrives of [true, false]) {
    vi.setSystemTime(START);
    const device = deviceOf();
    Object.assign(device, { hears: true, arrives });
    const sender = await device.visit("one");
    await vi.waitFor(() => {
      expect(notes.length).toBe(0);
    });
    vi.setSystemTime(START + 3 * DAY);
    const { sent, dropped } = await sender.deliver();
    expect([arrives, sent, { ...dropped }, device.collector.arrived]).toEqual([arrives, arrives ? 0 : 1, {}, ["reports one"]]);
  }
});

test("a page that lives on delivers once it has heard of what left", async () => {
  const leaving = new Leaving();
  const waiting = { fingerprint: "f", stream: "reports", body: new Uint8Array(10), due: START + 1000, cap: 1 } as const;
  leaving.add([{ key: "queue/c/1", waiting, at: START }]);
  let answer: (response: Response) => void = () => undefined;
  const fetcher = (): Promise<Response> =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const target = { fetcher, base: "https://collector.example.com/v1/campaigns/c", ...TOKENS };
  const sent = leaving.send(target, new Arrivals(new MemoryStore(), "c", () => startsOf(DAY)));
  let settled = false;
  const settling = leaving.settled().then(() => {
    settled = true;
  });
  await new Promise((resolve) => setTimeout(resolve));
  expect([settled, notes.length]).toEqual([false, 1]);
  answer(new Response(null, { status: 503 }));
  expect(await sent).toBe(0);
  await settling;
  expect(notes.length).toBe(0);
});

test("a device that is offline keeps its reports, and a browser without keepalive notes nothing", async () => {
  vi.stubGlobal("navigator", { onLine: false });
  const { collector, visit, open } = deviceOf();
  await visit("one");
  expect([collector.posts.length, notes.length]).toEqual([0, 0]);
  vi.setSystemTime(START + 3 * DAY);
  expect((await open().deliver()).sent).toBe(1);
  vi.stubGlobal("navigator", {});
  vi.stubGlobal("Request", class {});
  const old = deviceOf();
  await old.visit("one");
  expect([old.collector.posts.length, notes.length]).toEqual([1, 0]);
});

test("without localStorage, or if it fails, reports leave as before and nothing throws", async () => {
  const fail = (): never => {
    throw new DOMException("full", "QuotaExceededError");
  };
  for (const storage of [undefined, { get length() { return fail(); }, key: fail, getItem: fail, setItem: fail, removeItem: fail }]) {
    vi.stubGlobal("localStorage", storage);
    const { collector, visit, open } = deviceOf();
    await visit("one");
    expect(await open().deliver(true)).toMatchObject({ sent: 1, waiting: 0 });
    expect([posted(collector).length, new Set(posted(collector)).size]).toEqual([2, 1]);
    await expect(open().forget()).resolves.toBe(undefined);
  }
});

test("notes name no value, are few, and a note that says nothing is none", async () => {
  const { collector, visit, open } = deviceOf({ mostQueued: 5000 });
  for (let place = 0; place < 2000; place += 1) notes.setItem(`hushcount/left/queue/other/${String(place)}`, `${String(START - place)} 0`);
  notes.setItem("an app's own", "1");
  await visit("secret-1", "secret-2");
  expect(notes.length).toBe(2001);
  expect(JSON.stringify([...notes.items])).not.toContain("secret");
  expect([notes.getItem("an app's own"), notes.getItem("hushcount/left/queue/other/1999"), notes.getItem("hushcount/left/queue/other/0")]).toEqual(["1", null, `${String(START)} 0`]);
  for (const [name] of [...notes.items].filter(([each]) => each.includes("/features/"))) notes.setItem(name, "NaN");
  vi.setSystemTime(START + DAY);
  expect((await open().deliver()).sent).toBe(2);
  expect(posted(collector).length).toBe(4);
});

test("an opt-out deletes all notes", async () => {
  const { visit, open } = deviceOf();
  await visit("one");
  notes.setItem("hushcount/left/queue/other/1", "1 0");
  await open().forget();
  expect(notes.length).toBe(0);
});

test("a report that left is not made anew under another epoch", async () => {
  const { collector, visit, open } = deviceOf({ keepValues: true });
  // Without a campaign file values would wait.
  await open().deliver();
  await visit("one");
  expect(collector.arrived).toEqual(["reports one"]);
  collector.epoch = 2;
  const done = await open().deliver(true);
  expect(done).toMatchObject({ remade: 0, sent: 0, waiting: 0, dropped: { epoch_closed: 1 } });
  expect(collector.arrived).toEqual(["reports one"]);
});

test("a page that another one follows in the same window leaves it the rest of the cap, and in the next window all of it", async () => {
  const { collector, visit, open } = deviceOf({}, 2);
  await visit("one", "two");
  expect(await open().report("three")).toBe("over_cap");
  vi.setSystemTime(START + 12 * HOUR - 1);
  await open().deliver(true);
  expect(await open().report("three")).toBe("over_cap");
  vi.setSystemTime(START + 12 * HOUR);
  await visit("three", "four");
  vi.setSystemTime(START + 2 * DAY);
  // Before any delivery.
  await visit("five", "six");
  expect(await open().report("seven")).toBe("over_cap");
  expect([...new Set(collector.arrived)]).toEqual(["five", "four", "one", "six", "three", "two"].map((value) => `reports ${value}`));
});

test("whatever pages do and whenever, each report counts once, and in no window more than the cap", async () => {
  const step = fc.record({
    hours: fc.constantFrom(0, 1, 5, 11.95, 12, 24, 50),
    does: fc.constantFrom("visit", "killed", "deliver", "busy"),
    hears: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const device = deviceOf({}, 2);
      const { collector, visit, open } = device;
      const [counted, seen] = [new Map<number, Set<string>>(), new Set<string>()];
      let [now, made] = [START, 0];
      for (const { hours, does, hears } of steps) {
        vi.setSystemTime((now += hours * HOUR));
        device.hears = hears;
        collector.answer = () => (does === "busy" ? refusal(503, "queue_full") : new Response(null, { status: 202, headers: { Date: new Date(now).toUTCString() } }));
        const before = posted(collector).length;
        if (does === "visit") await visit(String((made += 1)));
        else if (does === "killed") await open().report(String((made += 1)));
        else await open().deliver(true);
        closeTabs();
        const window = Math.floor(now / DAY);
        const inWindow = counted.get(window) ?? new Set();
        for (const text of posted(collector).slice(before)) {
          expect(seen.has(text) && !inWindow.has(text)).toBe(false);
          seen.add(text);
          inWindow.add(text);
        }
        expect(inWindow.size).toBeLessThanOrEqual(2);
        counted.set(window, inWindow);
      }
    }),
    { numRuns: 60, seed: 33 },
  );
});
