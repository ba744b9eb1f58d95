/** The options of a sender. */

import type { Budget } from "../budget/budget.js";
import { UsageError } from "../errors.js";
import type { Issuer } from "../passes/asking.js";
import type { Store } from "../store/store.js";
import type { Policy } from "../trust/policy.js";
import type { Fetch } from "./http.js";
import { LONGEST_WAIT } from "./timing.js";

const SECOND = 1000;
/** The longest window, in seconds. */
export const MOST_SECONDS = Number.MAX_SAFE_INTEGER / SECOND;
const LARGEST_QUEUE = 100_000;

/** The options that an app passes to its sender. */
export interface SenderOptions {
  /** The collector's address, such as https://collector.example.com. */
  readonly site: string;
  /**
   * The collector's name in the campaign file, if the campaign has several collectors. Tokens are derived by this name and
   * not by the address, so a new address does not change the client's token.
   */
  readonly siteName?: string;
  /** The app's policy, which names the campaign and states the app's demands on it. */
  readonly policy: Policy;
  /** The store for queue, answers, budget and token: for one person only, shared by all tabs. */
  readonly store: Store;
  /**
   * Limits the cost of all reports of this person; by default the cost is only counted. The budget must use the same
   * store as the sender.
   */
  readonly budget?: Budget;
  /** Length of the operator's windows, or of the shortest that a campaign may list, in seconds; by default a day. */
  readonly windowSeconds?: number;
  /**
   * Keep the plain value beside a report on this device until the report is sent. Then a report that arrives after its
   * epoch was closed is made again, which spends its budget again, and values can wait for a campaign file that cannot
   * be fetched yet. By default no value is kept, so reports of a closed epoch are dropped and counted.
   */
  readonly keepValues?: boolean;
  /**
   * Each report waits a random time up to this number of seconds, at most a day; by default 600. In an oblivious
   * campaign the evaluation of a discovery report waits for such a time first, and after the answer the report waits
   * for another such time.
   */
  readonly delaySeconds?: number;
  /** The evaluator's address, for an oblivious campaign; by default the collector's address. */
  readonly evaluator?: string;
  /** Who gives the client its passes, for a campaign that asks for passes. */
  readonly issuer?: Issuer;
  /**
   * For how many seconds an evaluation is requested again if nobody answers, at most a day; by default 3600. After this
   * time, or if the page closes earlier, the discovery report is sent without its value.
   */
  readonly answerWithinSeconds?: number;
  /**
   * The largest number of reports that may wait. If more would wait, `report` makes no report and returns "queue_full".
   * By default 1000.
   */
  readonly mostQueued?: number;
  /** Throw what stops a report, for scripts and tests; by default `report` returns a word for it. */
  readonly strict?: boolean;
  /** Parsed files of designs: a campaign with mechanism `wss` needs the file with its design. */
  readonly designs?: readonly unknown[];
  /** The `fetch` of the sender; by default the browser's own. */
  readonly fetch?: Fetch;
}

/** The options that are numbers, checked, times in milliseconds. */
export interface Numbers {
  readonly window: number;
  readonly delay: number;
  readonly answerWithin: number;
  readonly mostQueued: number;
}

/** Check the options that are numbers. Throws UsageError, which names the option. */
export function numbersOf(options: SenderOptions): Numbers {
  const { mostQueued = 1000, delaySeconds = 600, windowSeconds = 86_400, answerWithinSeconds = 3600 } = options;
  requireIn("answerWithinSeconds", answerWithinSeconds, 0, LONGEST_WAIT / SECOND);
  requireIn("delaySeconds", delaySeconds, 0, LONGEST_WAIT / SECOND);
  requireIn("windowSeconds", windowSeconds, 1, MOST_SECONDS);
  requireIn("mostQueued", mostQueued, 1, LARGEST_QUEUE);
  return {
    window: windowSeconds * SECOND,
    delay: delaySeconds * SECOND,
    answerWithin: answerWithinSeconds * SECOND,
    mostQueued,
  };
}

/** Throw UsageError unless a number is in its range. */
export function requireIn(name: string, value: number, least: number, most: number): void {
  if (value >= least && value <= most) return;
  throw new UsageError(`${name} is ${String(value)}, must be from ${String(least)} to ${String(most)}`);
}
