/** The tabs of a page: senders that may share a store, with a collector in memory. */

import { afterEach, beforeEach, vi } from "vitest";
import type { SenderOptions } from "../src/sender/options.js";
import type { Reading } from "../src/sender/present.js";
import { Sender } from "../src/sender/sender.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Store } from "../src/store/store.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { vectors } from "./vectors.js";

export const TERMS = {
  campaign_id: "features",
  operator_keys: vectors("policies").accept[0]?.policy.operator_keys as unknown,
  max_epsilon: 1,
};
const open: Sender[] = [];

/** A sender without delay, its collector and its store; further tabs share the store. */
export function tab(
  options: Partial<SenderOptions> = {},
  collector = new FakeCollector(),
  reading: Reading = readingOf(),
): { sender: Sender; collector: FakeCollector; store: Store } {
  const store = options.store ?? new MemoryStore();
  const given = {
    site: "https://collector.example.com",
    policy: Policy.parse(TERMS, new Newest(store)),
    delaySeconds: 0,
    fetch: collector.fetch,
    ...options,
    store,
  };
  const sender = new Sender(given, () => reading);
  open.push(sender);
  return { sender, collector, store };
}

/** Give the tests a page, until no global is stubbed any more; return where its events come to. */
export function stubPage(): EventTarget {
  const page = new EventTarget();
  vi.stubGlobal("document", new EventTarget());
  vi.stubGlobal("addEventListener", page.addEventListener.bind(page));
  return page;
}

/** Close all senders that a test opened. */
export function closeTabs(): void {
  for (const sender of open.splice(0)) sender.close();
}

/** Let each test of a file begin at this moment, on a clock that only tests move, and leave nothing to the next one. */
export function eachBeginsAt(moment: number): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: moment, toFake: ["Date"] });
  });
  afterEach(() => {
    closeTabs();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
}

/** Return all that a store has, as text. */
export function dump(store: Store): Promise<string> {
  return store.change([{ prefix: "", most: 9999 }], ([found = []]) => ({
    result: found.map(([key, value]) => `${key}=${JSON.stringify(value, (_, each) => (each instanceof Uint8Array ? new TextDecoder().decode(each) : each))}`).join("\n"),
  }));
}
