import { UsageError } from "../errors.js";
import { valueOf, type Entry, type Store } from "../store/store.js";
import { counted } from "./allowance.js";
import { charge, chargedOf, recordOf, type BudgetLimits, type Charged, type Request } from "./ledger.js";
import { tellOptOut } from "./opt-out.js";
import type { Spent } from "./spent.js";
import { MOST_EPSILON } from "./units.js";

/** Key of what was charged, and whether the person opted out. */
export const BUDGET_KEY = "budget";
const ALLOWANCE_KEY = "allowance";
const DAY = 86_400_000;

/**
 * Bounds what all reports of one client cost together, over all campaigns, epochs and both streams; all tabs share it.
 *
 * Once the budget is spent, reports are of "other" and discovery reports have nothing to discover, whatever the values
 * are: silence would tell that. What is charged, and when the budget is spent, never depends on a value. A day is one
 * of UTC, and has its limit in whatever order the clock shows it. Whoever sets the clock opens a day with each one that is
 * not among the last 16; the lifetime's limit bounds what can be charged that way.
 *
 * Privacy: everything made under one budget is epsilon-private, replace-one, at `Spent.epsilon` and `Spent.delta`:
 * frequency reports whoever colludes, discovery reports as long as the auxiliary server and the analyzer do not. A
 * person who clears the site's data begins a new budget.
 */
export class Budget {
  readonly limits: BudgetLimits;
  readonly #store: Store;

  /**
   * @param store where the count is kept; one in memory ends with the page.
   * @param limits by default none, and reports of "other" once it is spent.
   * @throws UsageError a limit is none.
   */
  constructor(store: Store, limits: Partial<BudgetLimits> = {}) {
    this.#store = store;
    this.limits = { perDay: Infinity, lifetime: Infinity, whenSpent: "other", ...limits };
    for (const name of ["perDay", "lifetime"] as const) {
      const limit = this.limits[name];
      if (!((limit >= 0 && limit <= MOST_EPSILON) || limit === Infinity)) {
        throw new UsageError(
          `${name} is ${String(limit)}, must be an epsilon in 0..${String(MOST_EPSILON)}, or infinity`,
        );
      }
    }
  }

  /**
   * Charge reports that are about to be made, for good, in one step; return of each request how many may tell a value.
   *
   * Those are the first; the others must tell nothing, and are counted as such.
   *
   * @param window length of the deployment's windows in milliseconds, for the cap; infinity counts no cap.
   * @throws OverCap, OptedOut; BudgetSpent if not all fit and the app wants nothing then. Nothing is charged then.
   */
  charge(requests: readonly Request[], window = DAY, now: number = Date.now()): Promise<number[]> {
    return this.#store.change([BUDGET_KEY, ALLOWANCE_KEY], ([kept, made]) => {
      let charged = chargedOf(valueOf(kept));
      const telling = requests.map((request) => {
        const [after, number] = charge(charged, this.limits, request, now);
        charged = after;
        return number;
      });
      const put: Entry[] = [[BUDGET_KEY, recordOf(charged)]];
      if (window < Infinity) put.push([ALLOWANCE_KEY, counted(valueOf(made), window, requests, now)]);
      return { put, result: telling };
    });
  }

  /** Return what was spent and what is left; the sentences are loaded only here. */
  async spent(now: number = Date.now()): Promise<Spent> {
    const [charged, { spentOf }] = await Promise.all([this.#charged(), import("./spent.js")]);
    return spentOf(charged, this.limits, now);
  }

  /** Return whether the person opted out. Whoever sends what was made before asks this first. */
  async optedOut(): Promise<boolean> {
    return (await this.#charged()).optedOut;
  }

  /** Make nothing from now on, in any tab: charging then throws OptedOut. What was spent stays spent. */
  optOut(): Promise<void> {
    return this.#setOptedOut(true);
  }

  /** Make reports again. What was spent stays spent. */
  optIn(): Promise<void> {
    return this.#setOptedOut(false);
  }

  #charged(): Promise<Charged> {
    return this.#store.change([BUDGET_KEY], ([found]) => ({ result: chargedOf(valueOf(found)) }));
  }

  async #setOptedOut(optedOut: boolean): Promise<void> {
    await this.#store.change([BUDGET_KEY], ([found]) => {
      const put: Entry[] = [[BUDGET_KEY, recordOf({ ...chargedOf(valueOf(found)), optedOut })]];
      return { put, result: undefined };
    });
    // A page that goes has no time to read the store.
    tellOptOut();
  }
}
