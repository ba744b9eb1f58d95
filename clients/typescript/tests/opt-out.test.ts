/** The opt-out, and failures of the store, at moments that an app does not choose. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { Budget } from "../src/budget/budget.js";
import { utf8 } from "../src/bytes.js";
import { Client } from "../src/client.js";
import { OptedOut, StoreError } from "../src/errors.js";
import type { SenderOptions } from "../src/sender/options.js";
import { Queue } from "../src/sender/queue.js";
import type { Sender } from "../src/sender/sender.js";
import { Answers } from "../src/store/answers.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Entry, Outcome, Store, Wanted } from "../src/store/store.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector, refusal } from "./fake-maker.js";
import { closeTabs, stubPage, tab as tabOf, TERMS } from "./tabs.js";
import { vectors } from "./vectors.js";

function tab(store: Store, collector: FakeCollector, options: Partial<SenderOptions> = {}): Sender {
  return tabOf({ delaySeconds: 600, ...options, store }, collector).sender;
}

/** A client of another campaign of the same person. */
function clientOf(store: Store): Promise<Client> {
  const [{ file } = {}] = vectors("campaigns").accept.filter(({ name }) => name === "grr");
  const given = { campaign: utf8(JSON.stringify(file)), dictionary: utf8("one\ntwo\nthree\ngrößer\n") };
  return Client.open({ ...given, policy: Policy.trusting(), store });
}

/** A store that fails, or lets a test act, before a step. */
class Disturbed extends MemoryStore {
  before: (wanted: readonly Wanted[]) => void = () => undefined;

  override async change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    this.before(wanted);
    return super.change(wanted, step);
  }
}

function keysOf(store: Store): Promise<string[]> {
  return store.change([{ prefix: "", most: 9999, values: false }], ([found = []]) => ({ result: found.map(([key]) => key) }));
}

afterEach(() => {
  closeTabs();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a sender that was closed forgets too", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const sender = tab(store, collector);
  await sender.report("dark-mode");
  sender.close();
  await sender.forget();
  expect(await new Budget(store).optedOut()).toBe(true);
  expect((await keysOf(store)).filter((key) => key.startsWith("queue/"))).toEqual([]);
});

test("a report that was on its way into the queue does not leave with the page after an opt-out", async () => {
  const page = stubPage();
  for (let steps = 0; steps < 40; steps += 1) {
    const [store, collector] = [new MemoryStore(), new FakeCollector()];
    const sender = tab(store, collector).start();
    await sender.report("first");
    const second = sender.report("second");
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    await sender.forget();
    await second;
    // What was forgotten stays so.
    await new Budget(store).optIn();
    await sender.deliver();
    page.dispatchEvent(new Event("pagehide"));
    await sender.deliver();
    expect([steps, collector.arrived]).toEqual([steps, []]);
    sender.close();
  }
});

const forbidden = class {
  constructor() {
    throw new DOMException("this site may keep no data", "SecurityError");
  }
};

test.each([undefined, forbidden])("where a browser has no BroadcastChannel (%#) an opt-out is as thorough, and other tabs hear of it as they deliver", async (given) => {
  vi.stubGlobal("BroadcastChannel", given);
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const other = tab(store, collector).start();
  await other.report("dark-mode");
  await tab(store, collector).forget();
  expect(await new Budget(store).optedOut()).toBe(true);
  expect((await keysOf(store)).filter((key) => /^(queue|token)/.test(key))).toEqual([]);
  await other.deliver(true);
  expect(await other.report("light-mode")).toBe("opted_out");
  expect(collector.arrived).toEqual([]);
});

test("after the opt-out a report makes no request, and no token", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const sender = tab(store, collector);
  await sender.forget();
  expect(await sender.report("dark-mode")).toBe("opted_out");
  await sender.deliver();
  expect(collector.gets).toBe(0);
  expect(await keysOf(store)).toEqual(["budget"]);
});

test("the opt-out deletes all that waits, also more than this tab's own limit", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const other = tab(store, collector, { mostQueued: 1000 });
  for (const value of ["one", "two", "three"]) await other.report(value);
  await tab(store, collector, { mostQueued: 1 }).forget();
  expect(await new Queue(store, "features", 1000).waiting()).toBe(0);
});

test("an answer that was drawn during the opt-out is not kept", async () => {
  const store = new MemoryStore();
  const answers = new Answers(store);
  await new Budget(store).optOut();
  await answers.clear();
  await expect(answers.keep(new Uint8Array(32), new Uint8Array(40))).rejects.toThrow(OptedOut);
  expect(await keysOf(store)).toEqual(["budget"]);
});

test("a store that fails once does not stop a page for good", async () => {
  const [store, collector] = [new Disturbed(), new FakeCollector()];
  const sender = tab(store, collector);
  let failures = 1;
  store.before = ([wanted]) => {
    if (typeof wanted !== "object" || !wanted.prefix.startsWith("document/") || failures === 0) return;
    failures -= 1;
    throw new StoreError("cannot read the database");
  };
  expect(await sender.report("dark-mode")).toBe("storage");
  await sender.report("dark-mode");
});

test("a store that is full charges the reports of many calls once", async () => {
  const [store, collector] = [new Disturbed(), new FakeCollector()];
  const sender = tab(store, collector);
  await sender.report("first");
  const before = (await sender.spent()).epsilon;
  store.before = (wanted) => {
    const [count] = wanted;
    if (wanted.length === 2 && typeof count === "object" && count.prefix.startsWith("queue/")) throw new StoreError("full");
  };
  const said = await Promise.all(Array.from({ length: 64 }, (_, place) => sender.report(String(place))));
  expect(said).toEqual(Array(64).fill("storage"));
  // Each of 64 values costs 1 and 2.
  expect((await sender.spent()).epsilon - before).toBeLessThanOrEqual(64 * 3);
});

test("a reason that is also the name of something else is counted as any other", async () => {
  for (const reason of ["__proto__", "constructor"]) {
    const [store, collector] = [new MemoryStore(), new FakeCollector()];
    const sender = tab(store, collector);
    await sender.report("dark-mode");
    collector.answer = () => refusal(400, reason);
    const { dropped } = await sender.deliver(true);
    expect(Object.entries(dropped)).toEqual([[reason, 2]]);
  }
});

test("only a policy that was read, and keeps the newest epoch, is one", () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const byHand = { campaignId: "features", accept: () => Promise.resolve(Infinity) };
  expect(() => tab(store, collector, { policy: byHand as never })).toThrow("policy");
  expect(() => Policy.parse(TERMS, undefined as never)).toThrow("newest");
  const made = Policy as unknown as new (...given: unknown[]) => Policy;
  expect(() => new made()).toThrow("Policy.parse");
});

test("a device that comes back online while a delivery ends does not wait a minute", async () => {
  const page = new EventTarget();
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  const [store, collector] = [new Disturbed(), new FakeCollector()];
  const sender = tab(store, collector, { delaySeconds: 0 });
  await sender.report("first");
  await sender.deliver();
  collector.online = false;
  let offline = true;
  store.before = ([wanted]) => {
    // The first look at what is due after the failure.
    if (!offline || sender.log.at(-1)?.what !== "again" || typeof wanted !== "object" || !("most" in wanted)) return;
    if (wanted.most !== 1) return;
    offline = false;
    collector.online = true;
    page.dispatchEvent(new Event("online"));
  };
  await sender.report("second");
  sender.start();
  await vi.waitFor(() => {
    expect(collector.arrived.length).toBe(4);
  }, 20_000);
});

test("a sender that was closed and started again hears another tab's opt-out", async () => {
  const page = stubPage();
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const sender = tab(store, collector).start();
  sender.close();
  sender.start();
  await sender.report("dark-mode");
  await tab(store, collector).forget();
  await new Promise((resolve) => setTimeout(resolve, 200));
  page.dispatchEvent(new Event("pagehide"));
  await sender.deliver();
  expect(collector.arrived).toEqual([]);
});

describe("after an opt-out a page that is hidden posts nothing", () => {
  const ways: Record<string, (store: Store, sender: Sender) => Promise<void>> = {
    "by the sender": (_, sender) => sender.forget(),
    "by the budget": (store) => new Budget(store).optOut(),
    "by a client": async (store) => (await clientOf(store)).forget(),
    "in another tab": async (store) => {
      // Modules of its own, as another tab has: only the store and messages are shared.
      vi.resetModules();
      const other = await import("../src/budget/budget.js");
      await new other.Budget(store).optOut();
      await new Promise((resolve) => setTimeout(resolve, 100));
    },
  };
  const events = ["pagehide", "visibilitychange"];

  test.each(Object.keys(ways).flatMap((way) => events.map((event) => [way, event] as const)))("%s, at %s", async (way, event) => {
    const page = Object.assign(new EventTarget(), { visibilityState: "hidden" });
    vi.stubGlobal("document", page);
    vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
    const hide = (): boolean => page.dispatchEvent(new Event(event));
    const [store, collector] = [new MemoryStore(), new FakeCollector()];
    const [sender, late] = [tab(store, collector).start(), tab(store, collector)];
    await sender.report("dark-mode");
    await late.report("dark-mode");
    await ways[way]?.(store, sender);
    late.start();
    hide();
    await new Budget(store).optIn();
    // What waited at the opt-out is not sent later either.
    hide();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(collector.arrived).toEqual([]);
    await sender.report("light-mode");
    hide();
    await vi.waitFor(() => {
      expect(collector.arrived).toEqual(["discovery light-mode", "reports light-mode"]);
    });
  });
});

test("a batch that was accepted is sent, whatever text a proxy adds to the answer", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const sender = tab(store, collector);
  await sender.report("dark-mode");
  collector.answer = () => new Response("Accepted", { status: 202 });
  expect(await sender.deliver(true)).toMatchObject({ sent: 2, waiting: 0 });
});

test("a clock that is set back after a failure does not stop the fetching", async () => {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const sender = tab(store, collector);
  collector.online = false;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 365 * 86_400_000 });
  expect(await sender.report("dark-mode")).toBe("not_yet");
  collector.online = true;
  vi.useRealTimers();
  await sender.report("dark-mode");
});
