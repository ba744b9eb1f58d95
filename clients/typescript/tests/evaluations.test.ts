/** Discovery reports whose names an evaluator is asked for: one evaluation and one report for each value, whatever happens. */

import { describe, expect, test, vi } from "vitest";
import type { SenderOptions } from "../src/sender/options.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { evaluated, FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { dump, eachBeginsAt, tab as tabOf } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const HOUR = 3_600_000;

/** A sender of an oblivious campaign; further tabs share the store. */
function tab(options: Partial<SenderOptions> = {}, collector?: FakeCollector): ReturnType<typeof tabOf> {
  return tabOf(options, collector, readingOf({ evaluatorKey: "e".repeat(64) }));
}

function ofDiscovery({ arrived }: FakeCollector): readonly string[] {
  return arrived.filter((text) => text.startsWith("discovery"));
}

eachBeginsAt(START);

describe("asking an evaluator", () => {
  test("the blank is stored, no value is, and the finished report takes its place", async () => {
    const { sender, collector, store } = tab({ delaySeconds: 600 });
    await sender.report("dark-mode");
    expect(collector.evaluations).toEqual([]);
    const kept = await dump(store);
    expect(kept).toContain("discovery NOTHING");
    expect(kept).not.toContain("discovery dark-mode");
    vi.setSystemTime(START + 600_000);
    expect(await sender.deliver()).toMatchObject({ blank: {}, dropped: {} });
    expect(collector.evaluations).toMatchObject([{ fingerprint: "01".repeat(32), text: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
    expect(collector.evaluations[0]?.token).toMatch(/^[\w-]{43}$/);
    expect(collector.evaluations[0]?.token).not.toBe(collector.posts[0]?.token);
    vi.setSystemTime(START + 1_200_000);
    await sender.deliver();
    expect(collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode"]);
    expect(sender.log).toContainEqual(expect.objectContaining({ what: "answered", reports: 1, stream: "discovery", reason: "" }));
    vi.setSystemTime(START + 10 * HOUR);
    expect(await sender.deliver(true)).toMatchObject({ sent: 0, waiting: 0 });
    expect(collector.evaluations.length).toBe(1);
  });

  test("evaluations are asked at random times within the delay, one for each value", async () => {
    const { sender, collector } = tab({ delaySeconds: 1000, mostQueued: 1000 });
    const values = Array.from({ length: 100 }, (_, number) => (number % 2 === 0 ? "alike" : `value-${String(number)}`));
    for (const value of values) await sender.report(value);
    for (let quarter = 1; quarter <= 4; quarter += 1) {
      vi.setSystemTime(START + quarter * 250_000 + 1);
      await sender.deliver();
      // Of 100 uniform times, 25 are expected in each quarter; so far it is 26 more or fewer with probability below 1e-6.
      const asked = collector.evaluations.length;
      expect(Math.abs(asked - 25 * quarter), String(quarter)).toBeLessThan(26);
    }
    expect(new Set(collector.evaluations.map(({ text }) => text)).size).toBe(100);
    vi.setSystemTime(START + 2_000_002);
    await sender.deliver();
    expect(ofDiscovery(collector)).toEqual(values.map((value) => `discovery ${value}`).sort());
  });

  test("an evaluation keeps the token of its first window, and others have another", async () => {
    const { sender, collector } = tab({ windowSeconds: 3600, answerWithinSeconds: 86_400 });
    const good = collector.evaluate;
    collector.evaluate = () => refusal(503, "queue_full");
    await sender.report("first");
    await sender.deliver();
    vi.setSystemTime(START + 1.1 * HOUR);
    collector.evaluate = good;
    await sender.report("second");
    await sender.deliver();
    const [before, ...after] = collector.evaluations;
    const again = after.find(({ text }) => text === before?.text);
    const another = after.find(({ text }) => text !== before?.text);
    expect([after.length, again?.token]).toEqual([2, before?.token]);
    expect(another?.token).not.toBe(again?.token);
  });

  test("another address may be the evaluator's", async () => {
    const addresses: string[] = [];
    const collector = new FakeCollector();
    const fetch = (url: string, init: RequestInit): Promise<Response> => {
      if (url.includes("evaluations")) addresses.push(url);
      return collector.fetch(url, init);
    };
    const { sender } = tab({ evaluator: "https://evaluator.example.org/", fetch }, collector);
    await sender.report("dark-mode");
    await sender.deliver();
    expect(addresses).toEqual([`https://evaluator.example.org/v1/campaigns/features/evaluations?fingerprint=${"01".repeat(32)}`]);
    expect(() => tab({ evaluator: "http://evaluator.example.org" })).toThrow(/evaluator must be an address/);
  });

  test("without an answer the same evaluation is asked again, and after an hour the blank goes", async () => {
    const { sender, collector } = tab();
    collector.evaluate = undefined;
    await sender.report("dark-mode");
    await sender.deliver();
    expect(collector.evaluations.length).toBe(1);
    await sender.deliver();
    expect(collector.evaluations.length).toBe(1);
    vi.setSystemTime(START + 10_000);
    await sender.deliver();
    expect(collector.evaluations.length).toBe(2);
    expect(new Set(collector.evaluations.map(({ text }) => text)).size).toBe(1);
    expect(collector.arrived).toEqual(["reports dark-mode"]);
    vi.setSystemTime(START + HOUR);
    expect(await sender.deliver()).toMatchObject({ blank: { no_answer: 1 }, sent: 1, waiting: 0 });
    expect(collector.arrived).toEqual(["discovery NOTHING", "reports dark-mode"]);
    expect(sender.log.map(({ what, reason }) => `${what} ${reason}`.trim())).toEqual(
      expect.arrayContaining(["not_answered no_answer", "blank no_answer"]),
    );
  });

  test("an answer that comes late in the hour still finishes the report", async () => {
    const { sender, collector } = tab();
    collector.evaluate = () => refusal(503, "closed", { "Retry-After": "60" });
    await sender.report("dark-mode");
    await sender.deliver();
    collector.evaluate = (evaluation) => evaluated(evaluation);
    vi.setSystemTime(START + HOUR / 2);
    expect(await sender.deliver()).toMatchObject({ sent: 1, blank: {} });
    expect(ofDiscovery(collector)).toEqual(["discovery dark-mode"]);
  });

  test("an evaluation whose time went by while the page slept is asked all the same", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    await sender.report("dark-mode");
    vi.setSystemTime(START + 2 * HOUR);
    expect((await sender.deliver()).blank).toEqual({});
    vi.setSystemTime(START + 3 * HOUR);
    await sender.deliver();
    expect(collector.evaluations.length).toBe(1);
    expect(ofDiscovery(collector)).toEqual(["discovery dark-mode"]);
  });

  test("so are those of a clock that was 40 days ahead when it is set back", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    vi.setSystemTime(START + 960 * HOUR);
    await sender.report("dark-mode");
    vi.setSystemTime(START);
    sender.start();
    await vi.waitFor(() => {
      expect(collector.evaluations.length).toBe(1);
    });
  });

  test("so are those that were not due yet when the page fell asleep in the middle of a delivery", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    const values = Array.from({ length: 40 }, (_, number) => `value-${String(number)}`);
    for (const value of values) await sender.report(value);
    collector.evaluate = (evaluation) => {
      vi.setSystemTime(START + 2 * HOUR);
      return evaluated(evaluation);
    };
    vi.setSystemTime(START + 300_000);
    expect((await sender.deliver()).blank).toEqual({});
    expect(collector.evaluations.length).toBeLessThan(40);
    expect((await sender.deliver()).blank).toEqual({});
    vi.setSystemTime(START + 3 * HOUR);
    await sender.deliver();
    expect(ofDiscovery(collector)).toEqual(values.map((value) => `discovery ${value}`).sort());
  });

  test("with no time for an answer, each evaluation is asked once", async () => {
    const { sender, collector } = tab({ answerWithinSeconds: 0 });
    await sender.report("dark-mode");
    expect((await sender.deliver()).blank).toEqual({});
    collector.evaluate = undefined;
    await sender.report("light-mode");
    expect((await sender.deliver()).blank).toEqual({ no_answer: 1 });
    vi.setSystemTime(START + HOUR);
    expect((await sender.deliver()).blank).toEqual({});
    expect(collector.evaluations.length).toBe(2);
    expect(ofDiscovery(collector)).toEqual(["discovery NOTHING", "discovery dark-mode"]);
  });

  test("a report that finds the queue full leaves no evaluation", async () => {
    const store = new MemoryStore();
    const collector = new FakeCollector();
    const tabs = [0, 1].map(() => tab({ store, mostQueued: 2 }, collector).sender);
    const done = await Promise.all(tabs.map((sender) => sender.report("dark-mode")));
    expect(done.sort()).toEqual(["queue_full", "queued"]);
    // Both were charged: there was room until both were made.
    expect((await tabs[0]?.spent())?.epsilon).toBe(6);
    collector.evaluate = undefined;
    const blanks = [];
    for (const sender of tabs) blanks.push((await sender.deliver(true)).blank["no_answer"] ?? 0);
    expect(blanks.sort()).toEqual([0, 1]);
    expect(collector.evaluations.length).toBe(1);
    expect(ofDiscovery(collector)).toEqual(["discovery NOTHING"]);
  });

  test("a wrong proof has an event of its own, is not asked again, and the blank goes", async () => {
    const { sender, collector } = tab();
    collector.evaluate = (evaluation) => evaluated(evaluation, false);
    await sender.report("dark-mode");
    expect(await sender.deliver()).toMatchObject({ sent: 2, blank: { equivocation: 1 } });
    await sender.deliver(true);
    expect(collector.evaluations.length).toBe(1);
    expect(collector.arrived).toEqual(["discovery NOTHING", "reports dark-mode"]);
    expect(sender.log).toContainEqual(expect.objectContaining({ what: "blank", reason: "equivocation" }));
  });

  test.each([
    [410, "key_destroyed", false],
    [403, "refused", false],
    [404, "unknown_fingerprint", true],
    [409, "epoch_not_begun", true],
    [429, "too_many_evaluations", true],
    [500, "failed", true],
  ])("a refusal by %i %s lets the blank go, or the evaluation wait", async (status, name, waits) => {
    const { sender, collector } = tab();
    collector.evaluate = () => refusal(status, name);
    await sender.report("dark-mode");
    expect(await sender.deliver()).toMatchObject(waits ? { sent: 1, waiting: 1, blank: {} } : { sent: 2, waiting: 0, blank: { [name]: 1 } });
    expect(sender.log.at(waits ? -2 : -3)?.reason).toBe(name);
  });

  test.each([
    ["a page", () => new Response("<html>", { headers: { "Content-Type": "text/html" } }), "no_evaluator"],
    ["a refusal without a name", () => new Response("no", { status: 404 }), "no_evaluator"],
    ["too short", () => new Response(new Uint8Array(95), { headers: { "Content-Type": "application/octet-stream" } }), "wrong_length"],
    ["too long", () => new Response(new Uint8Array(97), { headers: { "Content-Type": "application/octet-stream" } }), "no_answer"],
  ])("%s is no answer: the evaluation waits", async (_, answer, reason) => {
    const { sender, collector } = tab();
    collector.evaluate = answer;
    await sender.report("dark-mode");
    expect(await sender.deliver()).toMatchObject({ sent: 1, waiting: 1, blank: {} });
    expect(sender.log).toContainEqual(expect.objectContaining({ what: "not_answered", reason }));
  });

  test("a tab that is killed leaves the blank, which another sends once its time is up, not before", async () => {
    const { collector, store, sender: killed } = tab();
    await killed.report("dark-mode");
    const { sender } = tab({ store }, collector);
    expect(await sender.deliver(true)).toMatchObject({ sent: 1, waiting: 1 });
    vi.setSystemTime(START + HOUR);
    expect(await sender.deliver()).toMatchObject({ sent: 1, waiting: 0 });
    // The other comes to life again: its evaluation is too late, and nothing is sent twice.
    expect((await killed.deliver(true)).blank).toEqual({});
    expect(killed.log.map(({ what }) => what)).not.toContain("blank");
    expect(collector.evaluations).toEqual([]);
    expect(collector.arrived).toEqual(["discovery NOTHING", "reports dark-mode"]);
  });

  test("an early delivery asks at once, and sends the blank of what is not answered", async () => {
    const { sender, collector } = tab({ delaySeconds: 600 });
    await sender.report("dark-mode");
    expect(await sender.deliver(true)).toMatchObject({ sent: 2, waiting: 0, blank: {} });
    collector.evaluate = undefined;
    await sender.report("light-mode");
    expect(await sender.deliver(true)).toMatchObject({ sent: 2, waiting: 0, blank: { no_answer: 1 } });
    expect(ofDiscovery(collector)).toEqual(["discovery NOTHING", "discovery dark-mode"]);
  });

  test("after the opt-out nothing is asked, in any tab", async () => {
    const { sender, collector, store } = tab();
    const other = tab({ store }, collector).sender;
    await sender.report("dark-mode");
    await other.report("light-mode");
    await other.forget();
    for (const each of [sender, other]) expect(await each.deliver(true)).toMatchObject({ sent: 0, waiting: 0 });
    expect(collector.evaluations).toEqual([]);
    expect(collector.posts).toEqual([]);
  });

  test("in the next epoch a kept value is asked for anew", async () => {
    const { sender, collector } = tab({ keepValues: true });
    collector.evaluate = undefined;
    await sender.report("dark-mode");
    await sender.deliver();
    collector.epoch = 2;
    collector.evaluate = (evaluation) => evaluated(evaluation);
    vi.setSystemTime(START + HOUR);
    await sender.deliver();
    vi.setSystemTime(START + HOUR + 1);
    await sender.deliver();
    expect(collector.evaluations.at(-1)?.fingerprint).toBe("02".repeat(32));
    expect(ofDiscovery(collector)).toEqual(["discovery dark-mode"]);
  });

  test("a running sender asks and sends by itself", async () => {
    vi.useRealTimers();
    const { sender, collector } = tab();
    sender.start();
    await sender.report("dark-mode");
    await vi.waitFor(() => {
      expect(collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode"]);
    }, 5000);
  });

  test("reports add no listener to the page, and a device that is online again asks at once", async () => {
    const page = new EventTarget();
    const listen = vi.fn(page.addEventListener.bind(page));
    vi.stubGlobal("addEventListener", listen);
    const { sender, collector } = tab();
    collector.evaluate = () => refusal(503, "closed", { "Retry-After": "600" });
    for (const value of ["one", "two", "three"]) await sender.report(value);
    expect(await sender.deliver()).toMatchObject({ sent: 3, waiting: 3 });
    expect(listen).not.toHaveBeenCalled();
    sender.start();
    const listeners = listen.mock.calls.length;
    await sender.report("four");
    expect(listen).toHaveBeenCalledTimes(listeners);
    expect(ofDiscovery(collector)).toEqual([]);
    collector.evaluate = (evaluation) => evaluated(evaluation);
    // Without this nothing is asked for ten minutes.
    page.dispatchEvent(new Event("online"));
    await vi.waitFor(() => {
      expect(ofDiscovery(collector)).toEqual(["discovery four", "discovery one", "discovery three", "discovery two"]);
    }, 5000);
  });

  test("answers of many values, wrong ones among them, leave one report for each value", async () => {
    const { sender, collector } = tab();
    let number = 0;
    collector.evaluate = (evaluation) => {
      number += 1;
      return number % 3 === 0 ? evaluated(evaluation, false) : number % 3 === 1 ? evaluated(evaluation) : refusal(429, "too_many_evaluations");
    };
    await Promise.all(Array.from({ length: 30 }, (_, each) => sender.report(`value-${String(each)}`)));
    for (let step = 0; step < 100; step += 1) {
      vi.setSystemTime(START + step * 120_000);
      await sender.deliver();
    }
    expect(ofDiscovery(collector).length).toBe(30);
    expect(new Set(collector.evaluations.map(({ text }) => text)).size).toBe(30);
    expect(ofDiscovery(collector).filter((text) => text !== "discovery NOTHING").length).toBeGreaterThan(9);
  });
});
