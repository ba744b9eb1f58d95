/** What an app says of its sender. */

import type { Budget } from "../budget/budget.js";
import { UsageError } from "../errors.js";
import type { Store } from "../store/store.js";
import type { Policy } from "../trust/policy.js";
import type { Fetch } from "./http.js";
import { LONGEST_WAIT } from "./timing.js";

const SECOND = 1000;
/** The longest window, in seconds. */
export const MOST_SECONDS = Number.MAX_SAFE_INTEGER / SECOND;
const LARGEST_QUEUE = 100_000;

/** What a sender needs. */
export interface SenderOptions {
  /** The collector's address, as in https://collector.example.com. */
  readonly site: string;
  /** What the client demands of the campaign; it names the campaign. */
  readonly policy: Policy;
  /** Where queue, answers, budget and token are kept: of this person alone, shared by all tabs. */
  readonly store: Store;
  /** Bounds what all reports of this person cost; by default they are only counted. It uses the same store. */
  readonly budget?: Budget;
  /** Length of the operator's windows, in seconds; by default a day. */
  readonly windowSeconds?: number;
  /**
   * Keep the plain value beside a report until it is sent, on this device. A report that arrives after its epoch was
   * closed is then made anew, which spends its budget again, and values wait for a campaign file that cannot be fetched
   * yet. Without it such reports are dropped, and counted. By default false.
   */
  readonly keepValues?: boolean;
  /**
   * Each report waits a random time up to this long, at most a day; by default 600 seconds. So does the evaluation of a
   * discovery report, in an oblivious campaign, and the report again after it is answered.
   */
  readonly delaySeconds?: number;
  /** The evaluator's address, for an oblivious campaign; by default the collector answers. */
  readonly evaluator?: string;
  /**
   * How long an evaluation is asked for again if nobody answers, at most a day; by default 3600 seconds. Then, or
   * if the page ends before, the discovery report goes without its value.
   */
  readonly answerWithinSeconds?: number;
  /** Reports that may wait; one more throws QueueFull, and nothing is made. By default 1000. */
  readonly mostQueued?: number;
  /** Files of designs, parsed: a campaign with mechanism `wss` needs that of its design. */
  readonly designs?: readonly unknown[];
  /** By default the browser's own. */
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
