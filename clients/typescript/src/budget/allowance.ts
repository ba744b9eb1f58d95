/** Limits the reports that a client makes: of each stream, in each window, at most the campaign's cap. */

import { OverCap } from "../errors.js";
import type { Value } from "../store/store.js";
import { own } from "../own.js";
import { countOf, lastChanged, type Counts } from "./last-changed.js";
import type { Request } from "./ledger.js";
import { startsOf } from "./starts.js";

/** Numbers of reports made, by campaign and stream, and by start of the window. */
type Made = Readonly<Record<string, Counts<number, number>>>;

/**
 * Count reports that are about to be made.
 *
 * Each window has its cap, in whatever order the clock shows the windows. So no reports are blocked after a clock that
 * was ahead is set right. A person who sets the clock to a window that is not among the last 16 gets a new cap, as with
 * any new window.
 *
 * @param kept the record of earlier counts.
 * @param window length of the windows of a campaign that lists none, in milliseconds.
 * @throws OverCap the reports exceed the cap, so none of them may be made.
 */
export function counted(kept: Value | undefined, window: number, requests: readonly Request[], now: number): Value {
  const made: Record<string, Counts<number, number>> = own((kept ?? {}) as unknown as Made);
  for (const { campaign, stream, number, due = now } of requests) {
    // Counts are by campaign, not by campaign file, because an operator may publish many epochs in one window.
    const name = `${campaign.id}/${stream}`;
    const starts = startsOf(window, campaign);
    const began = starts.at(due);
    const counts = made[name] ?? [];
    // Another epoch may list windows that begin a little earlier or later. They are no new windows.
    const earlier = counts.reduce((sum, [start, count]) => sum + (Math.abs(start - began) < starts.least ? count : 0), 0);
    if (earlier + number > campaign.cap) {
      throw new OverCap(
        `${String(number)} more ${stream} of campaign ${campaign.id} cannot be made: ` +
          `${String(earlier)} were made in the window that began at ${new Date(began).toISOString()}, and the cap is ` +
          `${String(campaign.cap)}; wait for the next window`,
      );
    }
    made[name] = lastChanged(counts, began, (countOf(counts, began) ?? 0) + number);
  }
  return made as unknown as Value;
}
