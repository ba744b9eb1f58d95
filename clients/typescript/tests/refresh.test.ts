/** A report causes no request: when the campaign file is fetched again does not tell when a value was used. */

import { describe, expect, test, vi } from "vitest";
import { Untrusted } from "../src/errors.js";
import type { SenderOptions } from "../src/sender/options.js";
import { refreshAt } from "../src/sender/documents.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { eachBeginsAt, tab as tabOf } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const HOUR = 3_600_000;
const MINUTE = 60_000;
const DELAY = 600_000;

function tab(options: Partial<SenderOptions> = {}, collector?: FakeCollector): ReturnType<typeof tabOf> {
  return tabOf({ delaySeconds: DELAY / 1000, ...options }, collector);
}

/** Count all that leaves: whatever is asked for. */
function watch(collector: FakeCollector): { fetch: typeof collector.fetch; requests: string[] } {
  const requests: string[] = [];
  return {
    requests,
    fetch: (url, init) => {
      requests.push(`${String(init.method)} ${url}`);
      return collector.fetch(url, init);
    },
  };
}

/** The milliseconds between uses, 5 to 55 minutes, in an order that looks random. */
const GAPS = Array.from({ length: 20 }, (_, number) => 300_000 + ((number * 7 + 3) % 20) * 157_000);

eachBeginsAt(START);

describe.each([0, 600])("of 20 uses with max-age %i none causes a request", (maxAge) => {
  test("while rounds go on", async () => {
    const collector = Object.assign(new FakeCollector(), { maxAge });
    const { fetch, requests } = watch(collector);
    const { sender } = tab({ fetch }, collector);
    await sender.deliver();
    const first = collector.gets;
    let [now, caused] = [START, 0];
    for (const gap of GAPS) {
      for (let part = 0; part < 4; part += 1) {
        vi.setSystemTime((now += gap / 4));
        await sender.deliver();
      }
      const before = requests.length;
      await sender.report("dark-mode");
      // A report wakes the page.
      await sender.deliver();
      caused += requests.length - before;
    }
    expect(caused).toBe(0);
    // In ten hours; each waits from one to one and a half, the next round and the delay.
    expect(collector.gets - first).toBeGreaterThanOrEqual(4);
    expect(collector.gets - first).toBeLessThanOrEqual(11);
  });

  test("in pages that only report", async () => {
    const collector = Object.assign(new FakeCollector(), { maxAge });
    const { fetch, requests } = watch(collector);
    const store = new MemoryStore();
    let { sender } = tab({ fetch, store }, collector);
    await sender.deliver();
    const before = requests.length;
    let now = START;
    for (const [place, gap] of GAPS.entries()) {
      vi.setSystemTime((now += gap));
      if (place % 2 === 0) ({ sender } = tab({ fetch, store }, collector));
      await sender.report("dark-mode");
    }
    expect(requests.length).toBe(before);
  });
});

test("the age that the collector named counts from an hour to a day, and half of it more at random", () => {
  const odd = ["", "max-age=-1", "max-age=1e5", "s-maxage=7200", "max-age=", "max-age=9999999999"];
  const cases: readonly (readonly [string, number])[] = [
    ["max-age=3600", HOUR],
    ["PUBLIC,MAX-AGE=7200, immutable", 2 * HOUR],
    ["max-age=999999999", 24 * HOUR],
    ...["public, max-age=0", ...odd].map((text) => [text, HOUR] as const),
  ];
  for (const [header, age] of cases) {
    const drawn = Array.from({ length: 64 }, () => (refreshAt(header, START) - START) / age);
    // 64 uniform draws fall into one half with probability 1.1e-19.
    expect([header, Math.min(...drawn) >= 1, Math.max(...drawn) <= 1.5]).toEqual([header, true, true]);
    expect([header, Math.min(...drawn) < 1.25, Math.max(...drawn) > 1.25]).toEqual([header, true, true]);
  }
});

test("an overdue file waits a random time from the opening of a page", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  await tab({ store }, collector).sender.deliver();
  const first = collector.gets;
  vi.setSystemTime(START + 72 * HOUR);
  const pages = Array.from({ length: 24 }, () => tab({ store }, collector).sender);
  for (const page of pages) await page.deliver();
  expect(collector.gets).toBe(first);
  for (let later = 0; later <= DELAY; later += MINUTE) {
    vi.setSystemTime(START + 72 * HOUR + later);
    for (const page of pages) await page.deliver();
    if (later !== DELAY / 2) continue;
    // All would ask in the first half of the delay, or none, with probability 1.2e-7.
    expect(collector.gets).toBeGreaterThan(first);
    expect(collector.gets).toBeLessThan(first + 24);
  }
  expect(collector.gets).toBe(first + 24);
  // The next page knows of it.
  const next = tab({ store }, collector).sender;
  for (const later of [0, DELAY]) {
    vi.setSystemTime(START + 72 * HOUR + DELAY + 0.8 * HOUR + later);
    await next.deliver();
  }
  expect(collector.gets).toBe(first + 24);
});

test("a page that slept past its random time does not ask as it wakes", async () => {
  const collector = new FakeCollector();
  const { sender } = tab({}, collector);
  await sender.deliver();
  const first = collector.gets;
  for (const later of [72 * HOUR, 75 * HOUR]) {
    vi.setSystemTime(START + later);
    await sender.deliver();
    expect(collector.gets).toBe(first);
  }
  for (let later = 0; later <= DELAY; later += MINUTE) {
    vi.setSystemTime(START + 75 * HOUR + later);
    await sender.deliver();
  }
  expect(collector.gets).toBe(first + 1);
});

test("a page that lives too short asks where it sends", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  await tab({ store }, collector).sender.report("dark-mode");
  const first = collector.gets;
  vi.setSystemTime(START + 24 * HOUR);
  expect((await tab({ store }, collector).sender.deliver()).sent).toBe(2);
  expect(collector.gets).toBe(first + 1);
});

test("a clock that is set back stops no refresh", async () => {
  vi.setSystemTime(START + 960 * HOUR);
  const { sender, collector } = tab();
  await sender.deliver();
  const first = collector.gets;
  for (let later = 0; later <= 2 * DELAY; later += MINUTE) {
    vi.setSystemTime(START + later);
    await sender.deliver();
  }
  expect(collector.gets).toBe(first + 1);
});

test("a closed epoch is a reason to ask, also where no value is kept", async () => {
  const { sender, collector } = tab();
  await sender.report("dark-mode");
  collector.epoch = 2;
  expect((await sender.deliver(true)).dropped).toEqual({ epoch_closed: 2 });
  await sender.report("dark-mode");
  expect((await sender.deliver(true)).sent).toBe(2);
});

test("a kept file that cannot be used is said, and fetched anew by a round", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  await tab({ store }, collector).sender.deliver();
  const first = collector.gets;
  let refused = true;
  const reading = readingOf();
  const open: typeof reading.open = (publication) =>
    refused ? Promise.reject(new Untrusted("expired")) : reading.open(publication);
  const { sender } = tabOf({ store }, collector, { ...reading, open });
  for (let use = 0; use < 2; use += 1) expect(await sender.report("dark-mode")).toBe("untrusted");
  expect(collector.gets).toBe(first);
  refused = false;
  await sender.deliver();
  await sender.report("dark-mode");
});

test("the first file comes when the page starts the sender", async () => {
  const { sender, collector } = tab();
  sender.start();
  await vi.waitFor(() => {
    expect(sender.log.map(({ what }) => what)).toEqual(["fetched"]);
  });
  const before = collector.gets;
  await sender.report("dark-mode");
  expect(collector.gets).toBe(before);
});

test("where the first file cannot be had, a running sender asks again, and no report does", async () => {
  const collector = Object.assign(new FakeCollector(), { online: false });
  const { fetch, requests } = watch(collector);
  const { sender } = tab({ fetch }, collector);
  sender.start();
  await vi.waitFor(() => {
    expect(sender.log.length).toBe(1);
  });
  vi.setSystemTime(START + HOUR);
  expect(await sender.report("dark-mode")).toBe("not_yet");
  expect(requests.length).toBe(1);
});
