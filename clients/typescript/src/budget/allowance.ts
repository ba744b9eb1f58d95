/** Limits the reports that a client makes: of each stream, in each window, at most the campaign's cap. */

import { OverCap } from "../errors.js";
import type { Value } from "../store/store.js";
import { own } from "../own.js";
import { countOf, lastChanged, type Counts } from "./last-changed.js";
import type { Request } from "./ledger.js";

/** Numbers of reports made, by start of the window, and by campaign and stream. */
type Made = Counts<number, Readonly<Record<string, number>>>;

/**
 * Count reports that are about to be made.
 *
 * Each window has its cap, in whatever order the clock shows the windows. So no reports are blocked after a clock that
 * was ahead is set right. A person who sets the clock to a window that is not among the last 16 gets a new cap, as with
 * any new window.
 *
 * @param kept the record of earlier counts.
 * @param window length of the deployment's windows, which tile time from 1970 on, in milliseconds.
 * @throws OverCap the reports exceed the cap, so none of them may be made.
 */
export function counted(kept: Value | undefined, window: number, requests: readonly Request[], now: number): Value {
  const before = (kept ?? []) as unknown as Made;
  const began = Math.floor(now / window) * window;
  const reports: Record<string, number> = own(countOf(before, began));
  for (const { campaign, stream, number } of requests) {
    // Counts are by campaign, not by campaign file, because an operator may publish many epochs in one window.
    const name = `${campaign.id}/${stream}`;
    const earlier = reports[name] ?? 0;
    if (earlier + number > campaign.cap) {
      throw new OverCap(
        `${String(number)} more ${stream} of campaign ${campaign.id} cannot be made: ` +
          `${String(earlier)} were made in the window that began at ${new Date(began).toISOString()}, and the cap is ` +
          `${String(campaign.cap)}; wait for the next window`,
      );
    }
    reports[name] = earlier + number;
  }
  return lastChanged(before, began, reports) as unknown as Value;
}
