import { describe, expect, test, vi } from "vitest";
import { startsOf } from "../src/budget/starts.js";
import { Budget } from "../src/budget/budget.js";
import { Untrusted, UsageError } from "../src/errors.js";
import { resume } from "../src/sender/hold.js";
import type { Maker } from "../src/sender/making.js";
import type { Publication } from "../src/sender/publication.js";
import { Queue } from "../src/sender/queue.js";
import { clientTokens } from "../src/sender/token.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { Arrivals } from "../src/sender/arrivals.js";
import { FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { dump, eachBeginsAt, tab } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const DAY = 86_400_000;

eachBeginsAt(START);

describe("reporting and delivering", () => {
  test("both reports of a value arrive once, with the token, and nothing that tells who sends", async () => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    expect(await sender.deliver()).toEqual({
      sent: 2,
      remade: 0,
      added: 0,
      dropped: {},
      waiting: 0,
      heldUntil: undefined,
      blank: {},
      noPass: false,
    });
    await sender.deliver();
    expect(collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode"]);
    const [post] = collector.posts;
    expect(post?.token).toMatch(/^[\w-]{43}$/);
    expect(new Set(collector.posts.map(({ token }) => token)).size).toBe(1);
    expect(post?.init).toMatchObject({
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      mode: "cors",
    });
  });

  test("a report waits its random delay, and no longer", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    for (let number = 0; number < 50; number += 1) await sender.report(`value ${String(number)}`);
    vi.setSystemTime(START + 300_000);
    await sender.deliver();
    // Each of 100 is due with a chance of a half: all or none with 2^-99.
    expect(collector.arrived.length).toBeGreaterThan(0);
    expect(collector.arrived.length).toBeLessThan(100);
    vi.setSystemTime(START + 601_000);
    await sender.deliver();
    expect(collector.arrived.length).toBe(100);
  });

  test("early sends what is not due", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    await sender.report("dark-mode");
    await sender.deliver(true);
    expect(collector.arrived.length).toBe(2);
  });

  test("many values at once share requests and steps, and each is acknowledged", async () => {
    const { sender, collector, store } = tab({ mostQueued: 3000 });
    const steps = vi.spyOn(store, "change");
    await Promise.all(Array.from({ length: 1000 }, (_, number) => sender.report(`v${String(number)}`)));
    expect(steps.mock.calls.length).toBeLessThan(100);
    await sender.deliver();
    expect(collector.arrived.length).toBe(2000);
    expect(collector.posts.length).toBeLessThan(30);
  });

  test("a value that is neither text nor number is refused without being repeated", async () => {
    const { sender } = tab();
    await expect(sender.report(7n as never)).rejects.toThrow(UsageError);
  });

  test("no event and no error holds a value", async () => {
    const { sender, collector } = tab({ mostQueued: 2 });
    await sender.report("secret-value");
    const strict = tab({ mostQueued: 1, strict: true }, collector).sender;
    const refused = await strict.report("secret-value").catch((error: unknown) => String(error));
    expect(refused).toMatch(/^QueueFull: /);
    expect(await sender.report("secret-value")).toBe("queue_full");
    collector.answer = () => refusal(400, "wrong_length");
    await sender.deliver();
    expect(refused).not.toContain("secret-value");
    expect(JSON.stringify(sender.log)).not.toContain("secret-value");
    expect(sender.log.map(({ what }) => what)).toEqual(["fetched", "queued", "not_queued", "dropped", "dropped"]);
  });

  test("a full queue refuses before anything is charged", async () => {
    const { sender } = tab({ mostQueued: 3 });
    await sender.report("one");
    expect(await sender.report("two")).toBe("queue_full");
    expect((await sender.spent()).epsilon).toBe(3);
  });

  test("the cap of a window is kept, and in the next one there is room", async () => {
    const { sender } = tab({}, new FakeCollector(), readingOf({ cap: 2 }));
    await Promise.all([sender.report("one"), sender.report("two")]);
    expect(await Promise.all([sender.report("three"), sender.report("four")])).toEqual(["over_cap", "over_cap"]);
    expect(await sender.report("five")).toBe("over_cap");
    expect((await sender.spent()).epsilon).toBe(6);
    await sender.deliver();
    vi.setSystemTime(START + DAY);
    await sender.report("six");
  });
});

describe("tabs that share a store", () => {
  test("deliver nothing twice, and show one token", async () => {
    const one = tab();
    const two = tab({ store: one.store }, one.collector);
    await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? one : two).sender.report(`v${String(n)}`)));
    await Promise.all([one.sender.deliver(), two.sender.deliver(), one.sender.deliver(true)]);
    expect(one.collector.arrived.length).toBe(40);
    expect(new Set(one.collector.posts.map(({ token }) => token)).size).toBe(1);
  });

  test("what a killed tab had claimed is sent by another one after the lease, as the same bytes", async () => {
    const collector = new FakeCollector();
    const bodies: string[] = [];
    let hang = true;
    const fetcher: typeof collector.fetch = (url, init) => {
      if (init.method === "POST") bodies.push(new TextDecoder().decode(init.body as Uint8Array));
      return init.method === "POST" && hang ? new Promise(() => undefined) : collector.fetch(url, init);
    };
    const one = tab({ fetch: fetcher }, collector, readingOf({ streams: ["reports"] }));
    await one.sender.report("dark-mode");
    void one.sender.deliver();
    await vi.waitFor(() => {
      expect(bodies.length).toBe(1);
    });
    hang = false;
    const two = tab({ store: one.store, fetch: fetcher }, collector, readingOf({ streams: ["reports"] }));
    expect((await two.sender.deliver()).sent).toBe(0);
    vi.setSystemTime(START + 301_000);
    expect((await two.sender.deliver()).sent).toBe(1);
    expect(bodies[1]).toBe(bodies[0]);
  });

  test("a claim that another tab made a moment later is not taken over", async () => {
    const store = new MemoryStore();
    const queue = new Queue(store, "features", 10);
    await queue.put([{ fingerprint: "f", stream: "reports", body: new Uint8Array(1), due: START, cap: 1 }]);
    const most = { reports: 9, bytes: 999 };
    const turn = new Arrivals(store, "features", () => startsOf(DAY)).turns()();
    expect(await queue.claim(START + 5, most, true, false, turn)).toBeDefined();
    expect(await queue.claim(START, most, true, true, turn)).toBeUndefined();
    // One from before the clock was set back is.
    expect(await queue.claim(START - 2 * DAY, most, true, true, turn)).toBeDefined();
  });

  test("a page that was open while the clock was 40 days ahead delivers when it is set back", async () => {
    const { sender, collector } = tab({ delaySeconds: 60 });
    vi.setSystemTime(START + 40 * DAY);
    await sender.report("dark-mode");
    vi.setSystemTime(START);
    sender.start();
    await vi.waitFor(() => {
      expect(collector.arrived.length).toBe(2);
    });
  });

  test("a clock that was set back does not keep a report for ever", async () => {
    const { sender } = tab();
    vi.setSystemTime(START + 300 * DAY);
    await sender.report("dark-mode");
    vi.setSystemTime(START);
    expect((await sender.deliver()).sent).toBe(2);
  });
});

describe("a collector in trouble", () => {
  test.each([
    ["offline", undefined],
    ["503", () => refusal(503, "disk_full", { "Retry-After": "5" })],
    ["a page of a hotel's network", () => new Response("<html>", { status: 403 })],
    ["a redirect that fetch does not follow", () => new Response("{}", { status: 200 })],
  ])("%s: nothing is lost, and the same bytes are sent later", async (_, answer) => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    const good = collector.answer;
    collector.answer = answer;
    const held = await sender.deliver();
    expect(held).toMatchObject({ sent: 0, dropped: {}, waiting: 2 });
    expect(held.heldUntil).toBeGreaterThan(START);
    collector.answer = good;
    expect((await sender.deliver()).sent).toBe(0);
    vi.setSystemTime(held.heldUntil ?? 0);
    expect((await sender.deliver()).sent).toBe(2);
  });

  test("pauses grow with each failure, and Retry-After counts up to a day", async () => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    collector.answer = undefined;
    const pauses: number[] = [];
    for (let number = 0; number < 5; number += 1) {
      const { heldUntil = 0 } = await sender.deliver();
      pauses.push(heldUntil - Date.now());
      vi.setSystemTime(heldUntil);
    }
    pauses.forEach((pause, number) => {
      expect(pause).toBeGreaterThanOrEqual(2500 * 2 ** number);
      expect(pause).toBeLessThanOrEqual(5000 * 2 ** number);
    });
    collector.answer = () => refusal(429, "too_many_reports", { "Retry-After": "999999999" });
    const { heldUntil = 0 } = await sender.deliver();
    expect(heldUntil - Date.now()).toBeGreaterThanOrEqual(DAY - 3_600_000);
    expect(heldUntil - Date.now()).toBeLessThanOrEqual(DAY);
  });

  test("a batch that is too long is halved until it fits", async () => {
    const { sender, collector } = tab({}, new FakeCollector(), readingOf({ streams: ["reports"] }));
    await Promise.all(Array.from({ length: 9 }, (_, n) => sender.report(`v${String(n)}`)));
    const { fetch } = collector;
    const limited: typeof fetch = (url, init) =>
      init.method === "POST" && (init.body as Uint8Array).length > 3 * 64
        ? Promise.resolve(refusal(413, "too_many_reports_at_once"))
        : fetch(url, init);
    const other = tab({ store: new MemoryStore(), fetch: limited }, collector, readingOf({ streams: ["reports"] }));
    await Promise.all(Array.from({ length: 9 }, (_, n) => other.sender.report(`w${String(n)}`)));
    expect((await other.sender.deliver()).sent).toBe(9);
    expect((await sender.deliver()).sent).toBe(9);
  });

  test("a proxy that refuses a batch as too large gets smaller ones, and one report is dropped", async () => {
    const { fetch } = new FakeCollector();
    const limited = (most: number): typeof fetch => (url, init) =>
      init.method === "POST" && (init.body as Uint8Array).length > most
        ? Promise.resolve(new Response("<html>", { status: 413, headers: { "Content-Type": "text/html" } }))
        : fetch(url, init);
    for (const [most, done] of [[3 * 64, { sent: 18 }], [0, { dropped: { too_long: 18 } }]] as const) {
      const { sender } = tab({ fetch: limited(most) });
      await Promise.all(Array.from({ length: 9 }, (_, n) => sender.report(`w${String(n)}`)));
      expect(await sender.deliver()).toMatchObject({ waiting: 0, ...done });
    }
  });

  test("a report that others than the collector refuse is posted 200 times", async () => {
    const { sender, collector } = tab({}, new FakeCollector(), readingOf({ streams: ["reports"] }));
    await sender.report("first");
    const good = collector.answer;
    collector.answer = () => new Response("<html>", { status: 403 });
    for (let posts = 1; posts < 200; posts += 1) {
      const { dropped, heldUntil = 0 } = await sender.deliver();
      expect([posts, dropped]).toEqual([posts, {}]);
      vi.setSystemTime(heldUntil);
    }
    expect((Date.now() - START) / DAY).toBeGreaterThan(5);
    // One that is not refused so often stays.
    await sender.report("second");
    const dropped: Readonly<Record<string, number>>[] = [];
    for (let posts = 0; posts < 2; posts += 1) {
      // They are of two windows, so of two requests.
      const done = await sender.deliver();
      if (Object.keys(done.dropped).length > 0) dropped.push(done.dropped);
      vi.setSystemTime(done.heldUntil ?? 0);
    }
    expect(dropped).toEqual([{ no_collector: 1 }]);
    collector.answer = good;
    await sender.deliver();
    expect(collector.arrived).toEqual(["reports second"]);
  });

  test("a refusal counts also if its page is cut off", async () => {
    const broken = (): ReadableStream => new ReadableStream({ pull: (controller) => { controller.error(new Error("reset")); } });
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    collector.answer = () => new Response(broken(), { status: 413 });
    expect(await sender.deliver()).toMatchObject({ dropped: { too_long: 2 }, waiting: 0 });
  });

  test("only a refusal that names its problem gives a report up", async () => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    collector.answer = () => refusal(404, "unknown_campaign");
    expect(await sender.deliver()).toMatchObject({ dropped: { unknown_campaign: 2 }, waiting: 0 });
  });

  test("an answer without end is not read to its end", async () => {
    const endless = new ReadableStream({ pull: (controller) => { controller.enqueue(new Uint8Array(1 << 16)); } });
    const { sender, collector } = tab({}, new FakeCollector(), readingOf({ streams: ["reports"] }));
    await sender.report("dark-mode");
    collector.answer = () => new Response(endless, { status: 400 });
    expect((await sender.deliver()).waiting).toBe(1);
  });
});

describe("a new epoch", () => {
  test("without plain values, reports of a closed epoch are dropped and counted", async () => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    collector.epoch = 2;
    expect(await sender.deliver()).toMatchObject({ sent: 0, dropped: { epoch_closed: 2 }, waiting: 0 });
    expect(await dump(tab({}, collector).store)).not.toContain("dark-mode");
  });

  test("with plain values they are made anew with their coordinates, once each, and charged anew", async () => {
    const { sender, collector } = tab({ keepValues: true });
    await sender.report("dark-mode", { version: 2.1, platform: "linux" });
    collector.epoch = 2;
    expect(await sender.deliver()).toMatchObject({ sent: 2, remade: 2, dropped: {}, waiting: 0 });
    expect(collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode+version=2.1+platform=linux"]);
    expect((await sender.spent()).epsilon).toBe(6);
  });

  test("a plain value is in the store only if the app keeps values", async () => {
    const without = tab();
    await without.sender.report("dark-mode");
    expect((await dump(without.store)).includes('"value"')).toBe(false);
    const keeping = tab({ keepValues: true });
    await keeping.sender.report("dark-mode");
    expect((await dump(keeping.store)).includes('"value":"dark-mode"')).toBe(true);
  });

  test("an epoch that the collector does not publish yet is waited for", async () => {
    const { sender, collector } = tab();
    await sender.report("dark-mode");
    collector.answer = () => refusal(409, "unknown_fingerprint");
    expect(await sender.deliver()).toMatchObject({ sent: 0, dropped: {}, waiting: 2 });
  });
});

describe("without a campaign file", () => {
  test("a value waits if the app keeps values, and is reported when the device is back online", async () => {
    const { sender, collector } = tab({ keepValues: true });
    collector.online = false;
    await sender.report("dark-mode");
    expect(sender.log.map(({ what }) => what)).toEqual(["not_fetched", "waits"]);
    collector.online = true;
    vi.setSystemTime(START + 61_000);
    expect(await sender.deliver()).toMatchObject({ sent: 2, remade: 2, added: 1, waiting: 0 });
    expect(collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode"]);
  });

  test("a value waits while no key vouches for the campaign, and holds up no report", async () => {
    const collector = new FakeCollector();
    let expired = false;
    const requireValid = (): void => {
      if (expired) throw new Untrusted("expired");
    };
    const reading = readingOf();
    const opened = async (publication: Publication): Promise<Maker> => ({
      ...(await reading.open(publication)),
      requireValid,
    });
    const { sender } = tab({ keepValues: true }, collector, { ...reading, open: opened });
    collector.online = false;
    await sender.report("dark-mode");
    collector.online = true;
    vi.setSystemTime(START + 61_000);
    await sender.report("light-mode");
    expired = true;
    expect(await sender.deliver(true)).toMatchObject({ sent: 2, waiting: 1 });
    expect(sender.log).toContainEqual(expect.objectContaining({ what: "again", reason: "no_valid_key" }));
  });

  test("a device that is online again tries at once only if nobody had answered", async () => {
    for (const answers of [true, false]) {
      const { sender, collector, store } = tab();
      await sender.report("dark-mode");
      collector.answer = answers ? () => new Response("<html>", { status: 404 }) : undefined;
      await sender.deliver(true);
      collector.answer = () => new Response(null, { status: 202 });
      await resume(store, "features");
      expect((await sender.deliver(true)).sent).toBe(answers ? 0 : 2);
    }
  });

  test("otherwise the app is told to report later", async () => {
    const { sender, collector } = tab();
    collector.online = false;
    expect(await sender.report("dark-mode")).toBe("not_yet");
  });

  test("the kept file serves while the collector is away, and nothing of its answers is sent back", async () => {
    const one = tab();
    await one.sender.report("dark-mode");
    one.collector.online = false;
    vi.setSystemTime(START + DAY);
    const two = tab({ store: one.store }, one.collector);
    await two.sender.deliver();
    await two.sender.report("dark-mode");
    one.collector.online = true;
    vi.setSystemTime(START + 2 * DAY);
    await two.sender.deliver();
    const files = two.sender.log.map(({ what }) => what).filter((what) => /fetched|queued|unchanged/.test(what));
    expect(files).toEqual(["not_fetched", "queued", "unchanged"]);
    // An ETag of this client alone would name it, after it has opted out too.
    expect(one.collector.asked.flatMap((headers) => [...headers.keys()])).toEqual([]);
  });
});

describe("budget and opt-out", () => {
  test("once the budget is spent, reports tell nothing and look the same", async () => {
    const store = new MemoryStore();
    const { sender, collector } = tab({ store, budget: new Budget(store, { lifetime: 4 }) });
    await sender.report("first");
    await sender.report("second");
    await sender.deliver();
    expect(collector.arrived).toEqual(["discovery NOTHING", "discovery first", "reports first", "reports second"]);
  });

  test("with whenSpent nothing, the app is told, and nothing is charged", async () => {
    const store = new MemoryStore();
    const budget = new Budget(store, { lifetime: 4, whenSpent: "nothing" });
    const { sender } = tab({ store, budget });
    await sender.report("first");
    expect(await sender.report("second")).toBe("budget_spent");
    expect((await sender.spent()).epsilon).toBe(3);
  });

  test("two tabs do not charge twice, nor more than the limit", async () => {
    const store = new MemoryStore();
    const tabs = [0, 1].map(() => tab({ store, budget: new Budget(store, { lifetime: 30 }) }));
    await Promise.all(Array.from({ length: 40 }, (_, n) => tabs[n % 2]?.sender.report(`v${String(n)}`)));
    expect((await tabs[0]?.sender.spent())?.epsilon).toBeLessThanOrEqual(30);
    const { streams = [] } = (await tabs[0]?.sender.spent()) ?? {};
    expect(streams.map(({ reports, blank }) => reports + blank)).toEqual([40, 40]);
  });

  test("forget deletes what waits, answers and token, in any tab, and keeps what was spent", async () => {
    const one = tab({ keepValues: true });
    const two = tab({ store: one.store, keepValues: true }, one.collector);
    await two.sender.report("dark-mode");
    // The opt-out is of the budget, and so of all campaigns.
    await clientTokens(one.store, "others");
    const other = new Queue(one.store, "others", 10);
    await other.put([{ fingerprint: "", stream: "", body: new Uint8Array(), value: "dark-mode", due: 0 }]);
    await one.sender.forget();
    const kept = await dump(one.store);
    expect(kept).not.toMatch(/dark-mode|token|queue|answer/);
    expect(await two.sender.deliver(true)).toMatchObject({ sent: 0, waiting: 0 });
    expect(await two.sender.report("light-mode")).toBe("opted_out");
    expect(one.collector.arrived).toEqual([]);
    expect(await one.sender.spent()).toMatchObject({ optedOut: true, epsilon: 3 });
    await new Budget(one.store).optIn();
    await two.sender.report("light-mode");
    expect(await one.sender.spent()).toMatchObject({ optedOut: false, epsilon: 6 });
  });

  test("a report that was being made while the person opted out is not queued", async () => {
    const { sender, store } = tab();
    const reporting = sender.report("dark-mode");
    const change = store.change.bind(store);
    let forgotten = false;
    vi.spyOn(store, "change").mockImplementation(async (wanted, step) => {
      const result = await change(wanted, step);
      if (!forgotten && wanted[0] === "budget") {
        forgotten = true;
        await new Budget(store).optOut();
      }
      return result;
    });
    expect(await reporting).toBe("opted_out");
    expect(await dump(store)).not.toContain("queue/");
  });
});
