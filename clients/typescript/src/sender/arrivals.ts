/**
 * Counts arrivals of reports, because in each window of the collector's clock at most the cap of each stream's reports
 * count.
 *
 * The shuffler counts a report in the window in which it arrives, whenever it was made. So a report is made only if the
 * waiting reports of its stream, plain values included, and the arrivals in the present window are together below the cap.
 * So no report is charged that the cap would drop: after several days offline, only the first reports wait, and no
 * later reports were made.
 *
 * The present window follows the collector's clock: the `Date` of its last answer 202, plus the time that has passed on the
 * device since. Before the first such answer, and if the device's clock was set back after the last answer, the present
 * window follows the device's clock. If the clock was set ahead after that answer, a later window is assumed until the
 * next answer, so reports up to one window's cap may be charged although the shuffler drops them.
 *
 * A report that left with a page, without an answer, is sent again only in the window in which it left, because only in
 * this window the report surely counts once. After this window the report is not sent again, and counts as an arrival
 * in the window.
 *
 * A collector that lies about the time gets no additional reports, and no additional budget is spent: reports in a
 * window of the device's clock are limited separately (budget/allowance.ts). Such a collector can only stop its client
 * from making reports, for two windows of the device's clock after an answer.
 */

import { countOf, lastChanged, type Counts } from "../budget/last-changed.js";
import type { Request } from "../budget/ledger.js";
import { OverCap } from "../errors.js";
import { own } from "../own.js";
import { valueOf, type Entry, type Outcome, type Store, type Value } from "../store/store.js";
import type { Stream } from "../trust/asked.js";
import { ALL, LEASE, queuePrefix, waitingOf, type Waiting } from "./queue.js";
import { arrivedKey } from "./token.js";

/** The range of years that windows may have. */
const FIRST_YEAR = 1970;
const LAST_YEAR = 8999;

type ByStream = Readonly<Partial<Record<Stream, number>>>;

/** The facts that are kept from the collector's answers; times are in milliseconds. */
interface Arrived {
  /** Time of the last answer by the device's clock, since 1970. */
  readonly answered: number;
  /** By how much the collector's clock was ahead of the device's clock at the last answer. */
  readonly ahead: number;
  /** Arrived reports of the last windows, by start of the window and by stream. */
  readonly windows: Counts<number, ByStream>;
}

/** Counts arrivals of one campaign's reports, in the steps that remove them from the queue; all tabs share it. */
export class Arrivals {
  readonly #store: Store;
  readonly #campaign: string;
  readonly #window: number;

  /** @param window length of the deployment's windows, in milliseconds. */
  constructor(store: Store, campaign: string, window: number) {
    this.#store = store;
    this.#campaign = campaign;
    this.#window = window;
  }

  /**
   * Throw OverCap unless the cap allows that all requested reports count.
   *
   * If several tabs report at the same moment, their reports may together exceed the cap; reports over the cap are
   * charged, but dropped.
   *
   * @param anew the reports are made from waiting plain values, which are counted already.
   */
  requireRoom(requests: readonly Request[], anew: boolean): Promise<void> {
    return this.#store.change([{ prefix: queuePrefix(this.#campaign), most: ALL }, this.#key], ([rows = [], kept]) => {
      const [before, now] = [arrivedOf(kept), Date.now()];
      const start = this.#windowOf(before, now, now);
      const holds = ({ fingerprint, left = now }: Waiting): boolean =>
        !(anew && fingerprint === "") && this.#windowOf(before, now, Math.min(left, now)) === start;
      const waiting = rows.map(waitingOf).filter(holds);
      const arrived = own(countOf(before.windows, start));
      for (const { campaign, stream, number } of requests) {
        const wait = waiting.filter((each) => each.stream === stream || each.stream === "").length;
        const came = arrived[stream] ?? 0;
        if (wait + came + number <= campaign.cap) continue;
        throw new OverCap(
          `${String(number)} more ${stream} of campaign ${campaign.id} would not count: ${String(wait)} wait to be sent, and ` +
            `${String(came)} arrived in the collector's present window, in which at most ${String(campaign.cap)} count; ` +
            "deliver what waits, or wait for the next window",
        );
      }
      return { result: undefined };
    });
  }

  /**
   * Remove reports that the collector took, and count them; return how many were still in the queue.
   *
   * @param at time of the answer by the collector's clock, in milliseconds since 1970; undefined if the answer did not
   * state it.
   */
  sent(keys: readonly string[], at: number | undefined): Promise<number> {
    return this.#store.change([...keys, this.#key], (found) => {
      const now = Date.now();
      const before = arrivedOf(found.at(-1));
      const after = at === undefined ? before : { ...before, answered: now, ahead: at - now };
      return this.#counted(keys, found, after, now, now);
    });
  }

  /**
   * Remove reports that left with a page, and count them in the window in which they left; return how many were still
   * in the queue.
   *
   * Do nothing and return undefined while a request could still arrive in the window in which the reports left.
   *
   * @param left time when they left, by the device's clock.
   */
  left(keys: readonly string[], left: number): Promise<number | undefined> {
    return this.#store.change([...keys, this.#key], (found) => {
      const [before, now] = [arrivedOf(found.at(-1)), Date.now()];
      // If the clock was set back since the reports left, the window in which they left is unknown.
      const isSame = left <= now && this.#windowOf(before, now, left) === this.#windowOf(before, now, now + LEASE);
      return isSame ? { result: undefined } : this.#counted(keys, found, before, now, Math.min(left, now));
    });
  }

  /** Return the step that removes reports, and counts them in the window of a time. */
  #counted(
    keys: readonly string[],
    found: readonly (readonly Entry[])[],
    kept: Arrived,
    now: number,
    moment: number,
  ): Outcome<number> {
    const start = this.#windowOf(kept, now, moment);
    const streams = found.slice(0, -1).flatMap((entries) => entries.map((entry) => waitingOf(entry).stream));
    const counts: Partial<Record<Stream, number>> = own(countOf(kept.windows, start));
    for (const stream of streams) if (stream !== "") counts[stream] = (counts[stream] ?? 0) + 1;
    // One window later is kept, because it may have begun at another collector. Even later windows come from a wrong
    // clock.
    const next = this.#windowOf(kept, now, now) + this.#window;
    const known = kept.windows.filter(([other]) => other <= next);
    const arrived = { ...kept, windows: lastChanged(known, start, counts) };
    return { put: [[this.#key, arrived as unknown as Value]], remove: keys, result: streams.length };
  }

  get #key(): string {
    return arrivedKey(this.#campaign);
  }

  /** Return the start of the collector's window at a time on the device. */
  #windowOf({ answered, ahead }: Arrived, now: number, moment: number): number {
    return Math.floor((now >= answered ? moment + ahead : moment) / this.#window) * this.#window;
  }
}

/** Return the time of a `Date` header in milliseconds since 1970; undefined if it is no IMF-fixdate of RFC 9110. */
export function dateOf(header: string | null): number | undefined {
  const moment = new Date(header ?? "");
  const year = moment.getUTCFullYear();
  return moment.toUTCString() === header && year >= FIRST_YEAR && year <= LAST_YEAR ? moment.getTime() : undefined;
}

function arrivedOf(found: readonly Entry[] | undefined): Arrived {
  return own((valueOf(found) ?? { answered: 0, ahead: 0, windows: [] }) as unknown as Arrived);
}
