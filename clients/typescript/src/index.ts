/** Hushcount's client for browsers and Node. The durable store for Node is in `hushcount/node`. */

export { Budget } from "./budget/budget.js";
export type { BudgetLimits } from "./budget/ledger.js";
export type { Spent, StreamSpent } from "./budget/spent.js";
export { Client, type ClientOptions } from "./client.js";
export type { PendingDiscovery } from "./discovery/oblivious.js";
export * from "./errors.js";
export type { Issuer } from "./passes/asking.js";
export type { Delivery } from "./sender/deliverer.js";
export type { Event } from "./sender/events.js";
export type { SenderOptions } from "./sender/options.js";
export { Sender } from "./sender/sender.js";
export { IndexedDbStore } from "./store/indexeddb-store.js";
export { MemoryStore } from "./store/memory-store.js";
export type { Store } from "./store/store.js";
export type { Stream } from "./trust/asked.js";
export { Newest } from "./trust/newest.js";
export { Policy } from "./trust/policy.js";
