/** How many reports a client may still make: at most the campaign's cap of each stream in each window. */

import { OverCap } from "../errors.js";
import type { Value } from "../store/store.js";
import type { Request } from "./ledger.js";

/** How many reports were made in the window that began at that time, by campaign and stream. */
interface Made {
  readonly began: number;
  readonly reports: Readonly<Record<string, number>>;
}

/**
 * Count reports that are about to be made. A clock that is set back opens no window again.
 *
 * @param kept the record of what was counted before.
 * @param window length of the deployment's windows, which tile time from 1970 on, in milliseconds.
 * @throws OverCap they exceed the cap: nothing may be made.
 */
export function counted(kept: Value | undefined, window: number, requests: readonly Request[], now: number): Value {
  const before = (kept ?? { began: 0, reports: {} }) as unknown as Made;
  const began = Math.floor(now / window) * window;
  let made = began > before.began ? { began, reports: {} } : before;
  for (const { campaign, stream, number } of requests) {
    // Not of each file: an operator may publish many epochs in one window.
    const name = `${campaign.id}/${stream}`;
    const earlier = made.reports[name] ?? 0;
    if (earlier + number > campaign.cap) {
      throw new OverCap(
        `${String(number)} more ${stream} of campaign ${campaign.id} in the window that began at ` +
          `${new Date(made.began).toISOString()}, where ${String(earlier)} were made: must be at most ` +
          `${String(campaign.cap)} together; wait for the next window`,
      );
    }
    made = { ...made, reports: { ...made.reports, [name]: earlier + number } };
  }
  return { began: made.began, reports: made.reports };
}
