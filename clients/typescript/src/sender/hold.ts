/** After a failure nothing is sent for a while, in any tab: longer after each failure in a row. */

import { valueOf, type Store } from "../store/store.js";
import { isAhead, LONGEST_WAIT, pause } from "./timing.js";

interface Hold {
  readonly failures: number;
  readonly until: number;
  /** Whether the collector asked for the time. */
  readonly asked: boolean;
}

/** Return until when nothing is sent, in milliseconds since 1970; undefined without a failure. */
export function heldUntil(store: Store, campaign: string, now: number): Promise<number | undefined> {
  return store.change([keyOf(campaign)], ([found]) => {
    const until = (valueOf(found) as Hold | undefined)?.until ?? 0;
    return { result: isAhead(until, now, LONGEST_WAIT) ? until : undefined };
  });
}

/** Hold after one more failure; `asked` is what the collector asked for, in milliseconds. Returns until when. */
export function hold(store: Store, campaign: string, now: number, asked: number): Promise<number> {
  const key = keyOf(campaign);
  return store.change([key], ([found]) => {
    const failures = ((valueOf(found) as Hold | undefined)?.failures ?? 0) + 1;
    const until = now + pause(failures, asked);
    return { put: [[key, { failures, until, asked: asked > 0 }]], result: until };
  });
}

/** Forget the failures: the collector answered. */
export function release(store: Store, campaign: string): Promise<void> {
  return store.change([], () => ({ remove: [keyOf(campaign)], result: undefined }));
}

/** Hold no longer, unless the collector asked for it: the device was offline, and is not now. */
export function resume(store: Store, campaign: string): Promise<void> {
  const key = keyOf(campaign);
  return store.change([key], ([found]) => {
    const asked = (valueOf(found) as Hold | undefined)?.asked ?? false;
    return { remove: asked ? [] : [key], result: undefined };
  });
}

function keyOf(campaign: string): string {
  return `hold/${campaign}`;
}
