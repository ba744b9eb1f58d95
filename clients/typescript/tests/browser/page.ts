/** What the pages of the browser tests run: the package, with reports that are plain text. */

import { Budget } from "../../src/budget/budget.js";
import { unhex } from "../../src/bytes.js";
import { nextTask } from "../../src/sender/making.js";
import type { SenderOptions } from "../../src/sender/options.js";
import { Sender } from "../../src/sender/sender.js";
import { IndexedDbStore } from "../../src/store/indexeddb-store.js";
import { verifyNatively, verifyPortably } from "../../src/trust/ed25519.js";
import { Newest } from "../../src/trust/newest.js";
import { Policy } from "../../src/trust/policy.js";
import { readingOf } from "../fake-maker.js";

async function open(site: string, keys: unknown, options: Partial<SenderOptions> & { lifetime?: number; cap?: number }) {
  const store = await IndexedDbStore.open();
  const policy = Policy.parse({ campaign_id: "features", operator_keys: keys, max_epsilon: 1 }, new Newest(store));
  const budget = new Budget(store, { lifetime: options.lifetime ?? Infinity });
  const sender = new Sender({ site, policy, store, budget, delaySeconds: 0, ...options }, () => readingOf({ cap: options.cap ?? 1000 }));
  return { store, sender, budget };
}

/** A sender of a real collector, whose reports wait up to 600 seconds. */
async function openReal(site: string, terms: unknown) {
  const store = await IndexedDbStore.open();
  return new Sender({ site, store, policy: Policy.parse(terms, new Newest(store)) });
}

const tools = { open, openReal, IndexedDbStore, verifyNatively, verifyPortably, unhex, nextTask };

/** What the tests call in a page. */
export type Tools = typeof tools;

Object.assign(globalThis, { tools });
