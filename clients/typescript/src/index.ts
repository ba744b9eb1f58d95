/** Hushcount's client for browsers. */

export { Budget } from "./budget/budget.js";
export type { BudgetLimits } from "./budget/ledger.js";
export type { Spent, StreamSpent } from "./budget/spent.js";
export * from "./errors.js";
export { IndexedDbStore } from "./store/indexeddb-store.js";
export { MemoryStore } from "./store/memory-store.js";
export type { Store } from "./store/store.js";
export { Newest } from "./trust/newest.js";
export { Policy } from "./trust/policy.js";
