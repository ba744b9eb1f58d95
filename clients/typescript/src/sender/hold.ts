/** The pause after failures, in which no tab sends: it gets longer with each failure in a row. */

import { valueOf, type Store } from "../store/store.js";
import { own } from "../own.js";
import { NO_ANSWER } from "./posting.js";
import { isAhead, LONGEST_WAIT, pause } from "./timing.js";
import type { Verdict } from "./verdict.js";

interface Hold {
  readonly failures: number;
  readonly until: number;
  /** Whether an answer came. If so, the pause does not end when the device goes online again. */
  readonly answered: boolean;
}

/** Return the end of the pause, in milliseconds since 1970; undefined without a failure. */
export function heldUntil(store: Store, campaign: string, now: number): Promise<number | undefined> {
  return store.change([keyOf(campaign)], ([found]) => {
    const until = (valueOf(found) as Hold | undefined)?.until ?? 0;
    return { result: isAhead(until, now, LONGEST_WAIT) ? until : undefined };
  });
}

/** Pause after one more failure; `wait` is the collector's Retry-After in milliseconds. Returns the end of the pause. */
export function hold(store: Store, campaign: string, now: number, { reason, wait }: Verdict): Promise<number> {
  const key = keyOf(campaign);
  return store.change([key], ([found]) => {
    const failures = ((valueOf(found) as Hold | undefined)?.failures ?? 0) + 1;
    const until = now + pause(failures, wait);
    return { put: [[key, { failures, until, answered: reason !== NO_ANSWER }]], result: until };
  });
}

/** Forget the failures, because the collector answered. */
export function release(store: Store, campaign: string): Promise<void> {
  return store.change([], () => ({ remove: [keyOf(campaign)], result: undefined }));
}

/** End the pause, because the device is online again; but not if the pause began with an answer. */
export function resume(store: Store, campaign: string): Promise<void> {
  const key = keyOf(campaign);
  return store.change([key], ([found]) => {
    const { answered = false } = own(valueOf(found) as Hold | undefined);
    return { remove: answered ? [] : [key], result: undefined };
  });
}

function keyOf(campaign: string): string {
  return `hold/${campaign}`;
}
