/** What the pages of the browser tests run: the package, with reports that are plain text. */

import { Budget } from "../../src/budget/budget.js";
import { unhex } from "../../src/bytes.js";
import { TOOLS, type Form } from "../../src/campaign/campaign.js";
import { nextTask } from "../../src/sender/making.js";
import type { SenderOptions } from "../../src/sender/options.js";
import { Sender } from "../../src/sender/sender.js";
import { IndexedDbStore } from "../../src/store/indexeddb-store.js";
import { verifyNatively, verifyPortably } from "../../src/trust/ed25519.js";
import { Newest } from "../../src/trust/newest.js";
import { Policy } from "../../src/trust/policy.js";
import { loadAssigned } from "../../src/values/unicode13.js";
import { itemOfUrl } from "../../src/values/urls.js";
import { readingOf } from "../fake-maker.js";
import type { Entry } from "../vectors.js";

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

/** Return the items of addresses. */
async function itemsOf(entries: readonly Entry[]): Promise<readonly string[]> {
  const assigned = await loadAssigned();
  return entries.map(({ url, most, text, hosts }) => {
    const form = { url, discoveryTerms: { isOblivious: true, maxValueBytes: most } } as unknown as Form;
    return itemOfUrl(TOOLS, form)(text as string, assigned, hosts && new Set(hosts as string[]));
  });
}

const tools = { open, openReal, IndexedDbStore, verifyNatively, verifyPortably, unhex, nextTask, itemsOf };

/** What the tests call in a page. */
export type Tools = typeof tools;

Object.assign(globalThis, { tools });
