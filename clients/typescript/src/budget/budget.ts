import { UsageError } from "../errors.js";
import { valueOf, type Entry, type Store } from "../store/store.js";
import { counted } from "./allowance.js";
import { charge, chargedOf, recordOf, type BudgetLimits, type Charged, type Request } from "./ledger.js";
import { tellOptOut } from "./opt-out.js";
import type { Spent } from "./spent.js";
import { MOST_EPSILON } from "./units.js";

/** Store key of all charges, and of the opt-out. */
export const BUDGET_KEY = "budget";
const ALLOWANCE_KEY = "allowance";
const DAY = 86_400_000;

/**
 * Limits the total cost of one client's reports, over all campaigns, epochs and both streams; all tabs share it.
 *
 * Once the budget is spent, frequency reports are of "other" and discovery reports are blanks, whatever the values are,
 * because sending no report would reveal that the budget is spent. Charges, and the moment when the budget is spent,
 * never depend on values. Days are UTC, and each day has its own limit, in whatever order the clock shows the days. A
 * person who sets the clock to a day that is not among the last 16 gets a new daily limit; the lifetime limit bounds
 * these charges too.
 *
 * Privacy: all reports under one budget are together (epsilon, delta)-private, replace-one, with `Spent.epsilon` and
 * `Spent.delta`. This holds for frequency reports whoever colludes, or with noise of the mixes as long as shuffler or
 * auxiliary server keeps to its role, and for discovery reports as long as the auxiliary server and the analyzer do not
 * collude. A person who clears the site's data begins a new budget.
 */
export class Budget {
  readonly limits: BudgetLimits;
  readonly #store: Store;

  /**
   * @param store keeps the charges; a store in memory ends with the page.
   * @param limits by default no limits, and reports of "other" once the budget is spent.
   * @throws UsageError a limit is invalid.
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
   * Charge reports that are about to be made, for good, in one step. Return, for each request, how many of its reports may
   * depend on values.
   *
   * The reports that may depend on values are the request's first reports. All other reports of the request must not
   * depend on values, and are counted as blank.
   *
   * @param window length of the deployment's windows in milliseconds, for the cap; infinity: the cap is not counted.
   * @throws OverCap, OptedOut; BudgetSpent if not all reports fit into the budget and the app then wants no reports.
   * Then nothing is charged.
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

  /** Return the spent and the remaining budget. The module that writes sentences for the person is loaded only here. */
  async spent(now: number = Date.now()): Promise<Spent> {
    const [charged, { spentOf }] = await Promise.all([this.#charged(), import("./spent.js")]);
    return spentOf(charged, this.limits, now);
  }

  /** Return whether the person opted out. Code that sends reports that were made earlier must check this first. */
  async optedOut(): Promise<boolean> {
    return (await this.#charged()).optedOut;
  }

  /**
   * Make no more reports, in any tab, because `charge` throws OptedOut from now on. The spent budget is not given back.
   */
  optOut(): Promise<void> {
    return this.#setOptedOut(true);
  }

  /** Make reports again. The spent budget is not given back. */
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
    // Other pages are told of the opt-out at once, because a page that closes has no time to read the store.
    tellOptOut();
  }
}
