/** After a failure nothing is sent for a while, in any tab: longer after each failure in a row. */

import { valueOf, type Store } from "../store/store.js";
import { own } from "../own.js";
import { NO_ANSWER } from "./posting.js";
import { isAhead, LONGEST_WAIT, pause } from "./timing.js";
import type { Verdict } from "./verdict.js";

interface Hold {
  readonly failures: number;
  readonly until: number;
  /** Whether somebody answered: it does not help then that the device is online again. */
  readonly answered: boolean;
}

/** Return until when nothing is sent, in milliseconds since 1970; undefined without a failure. */
export function heldUntil(store: Store, campaign: string, now: number): Promise<number | undefined> {
  return store.change([keyOf(campaign)], ([found]) => {
    const until = (valueOf(found) as Hold | undefined)?.until ?? 0;
    return { result: isAhead(until, now, LONGEST_WAIT) ? until : undefined };
  });
}

/** Hold after one more failure; `wait` is what the collector asked for, in milliseconds. Returns until when. */
export function hold(store: Store, campaign: string, now: number, { reason, wait }: Verdict): Promise<number> {
  const key = keyOf(campaign);
  return store.change([key], ([found]) => {
    const failures = ((valueOf(found) as Hold | undefined)?.failures ?? 0) + 1;
    const until = now + pause(failures, wait);
    return { put: [[key, { failures, until, answered: reason !== NO_ANSWER }]], result: until };
  });
}

/** Forget the failures: the collector answered. */
export function release(store: Store, campaign: string): Promise<void> {
  return store.change([], () => ({ remove: [keyOf(campaign)], result: undefined }));
}

/** Hold no longer, unless somebody answered: the device was offline, and is not now. */
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
