/**
 * Which reports a client sends: the collector takes at most the cap of each stream in each window, under all tokens.
 *
 * The shuffler counts a report in the window in which it arrives, whenever it was made, and it counts by tokens, of which
 * a client has several. So the client itself keeps the cap, whatever its clock shows (docs/adr/0051):
 *
 * - A post states the window of its token, and the collector takes no report before its window begins.
 * - A report takes a place in the step that claims it, before it leaves, if it, the reports that came in its window or
 *   later, and all other tried reports are together at most the cap. What has no room is given up, `over_cap`.
 * - A tried report keeps its place in every window, because lost requests and answers look alike. Once it is settled, it
 *   counts in the window of the answer's `Date`: no collector goes back to an earlier window.
 * - A post of a report that leaves with a page, whose answer nobody reads, also states when its window ends, and so do
 *   later posts of it. So it arrives in this window or never, and is not sent again in another one.
 *
 * A report is made only if it would have such a place beside all reports that wait. After several days offline, only the
 * first reports wait, and no later reports were made.
 *
 * The present window follows the collector's clock: the `Date` of its last answer, plus the time that has passed on the
 * device since. Before the first answer, and if the device's clock was set back after the last answer, the present window
 * follows the device's clock. A wrong present window makes reports wait or be given up, and never lets more arrive.
 *
 * A collector that lies about the time gets no additional reports, and no additional budget is spent: reports in a
 * window of the device's clock are limited separately (budget/allowance.ts). Such a collector can only stop its client
 * from making reports, for two windows of the device's clock after an answer.
 */

import { countOf, lastChanged, type Counts } from "../budget/last-changed.js";
import type { Request } from "../budget/ledger.js";
import { OverCap } from "../errors.js";
import { FIRST_YEAR, LAST_YEAR, type Starts } from "../budget/starts.js";
import { own } from "../own.js";
import { valueOf, type Entry, type Store, type Value } from "../store/store.js";
import type { Stream } from "../trust/asked.js";
import { ALL, mayArrive, queuePrefix, waitingOf, type Turn, type Waiting } from "./queue.js";
import { arrivedKey } from "./token.js";

/** Stands for a window in `windows`: for reports that were given up since the last answer, which count in every window. */
const EVERY = Number.MAX_SAFE_INTEGER;

type ByStream = Readonly<Partial<Record<Stream, number>>>;
const STREAMS: readonly Stream[] = ["reports", "discovery"];
const NOTHING = { answered: 0, ahead: 0, windows: [] } as const;

/** The facts that are kept; times are in milliseconds. */
interface Arrived {
  /** Time of the last answer by the device's clock, since 1970. */
  readonly answered: number;
  /** By how much the collector's clock was ahead of the device's clock at the last answer. */
  readonly ahead: number;
  /** Tried reports that were settled, by start of the window, or EVERY, and by stream. */
  readonly windows: Counts<number, ByStream>;
}

/** Counts one campaign's reports that came, in the steps that change the queue; all tabs share it. */
export class Arrivals {
  readonly #store: Store;
  readonly #campaign: string;
  readonly #starts: () => Starts;
  /** What was kept when it was last read, for a closing page, which has no time to read the store. */
  #known: Arrived = NOTHING;

  /** @param starts returns when windows begin, by what the client knows now. */
  constructor(store: Store, campaign: string, starts: () => Starts) {
    this.#store = store;
    this.#campaign = campaign;
    this.#starts = starts;
  }

  /**
   * Throw OverCap unless the cap allows that all requested reports count.
   *
   * If several tabs report at the same moment, more reports than the cap may wait; reports over the cap are charged, but
   * given up.
   *
   * @param anew the reports are made from waiting plain values, which are counted already.
   */
  requireRoom(requests: readonly Request[], anew: boolean): Promise<void> {
    return this.#store.change([{ prefix: queuePrefix(this.#campaign), most: ALL }, this.#key], ([rows = [], kept]) => {
      const before = arrivedOf(kept);
      const start = this.#windowOf(before, Date.now());
      const holds = (each: Waiting): boolean =>
        each.bound === true ? each.window === start : mayArrive(each, start) ||
        (each.left === undefined && (each.window ?? start) <= start && !(anew && each.fingerprint === ""));
      const waiting = rows.map(waitingOf).filter(holds);
      for (const { campaign, stream, number } of requests) {
        const wait = waiting.filter((each) => each.stream === stream || each.stream === "").length;
        const went = this.#cameOf(before, stream, start);
        if (wait + went + number <= campaign.cap) continue;
        throw new OverCap(
          `${String(number)} more ${stream} of campaign ${campaign.id} would not count: ${String(wait)} wait to be sent, and ` +
            `${String(went)} arrived in the collector's present window, in which at most ${String(campaign.cap)} count; ` +
            "deliver what waits, or wait for the next window",
        );
      }
      return { result: undefined };
    });
  }

  /** Read what is known of the collector's clock. */
  async read(): Promise<void> {
    this.#known = await this.#store.change([this.#key], ([kept]) => ({ result: arrivedOf(kept) }));
  }

  /** Return when the present window began, in milliseconds since 1970, by what was last read. */
  present(): number {
    return this.#windowOf(this.#known, Date.now());
  }

  /** Return how many reports of a stream came in a window or later, by what was last read. */
  came(stream: Stream, window: number): number {
    return this.#cameOf(this.#known, stream, window);
  }

  /**
   * Return a function that returns the present window by what was last read of the collector's clock. The claims of one
   * delivery use one function until an answer says that a window has not begun. Otherwise an answer to the reports of one
   * stream could change the window between the two streams of a value.
   */
  turns(): () => Turn {
    const known = this.#known;
    const came: Turn["came"] = (kept, stream, window) => this.#cameOf(keptOf(kept), stream, window);
    return () => ({ window: this.#windowOf(known, Date.now()), key: this.#key, came });
  }

  /** Keep the time of an answer by the collector's clock, in milliseconds since 1970. */
  async heard(at: number): Promise<void> {
    this.#known = await this.#store.change([this.#key], ([kept]) => {
      const after = this.#heard(arrivedOf(kept), at);
      return { put: [[this.#key, valued(after)]], result: after };
    });
  }

  /**
   * Remove reports that the collector took or that are given up, and count them; return how many were still in the queue.
   *
   * @param at time of the answer by the collector's clock, in milliseconds since 1970; undefined if it is not known.
   * @param took the collector took the reports, so that without `at` they count in the present window.
   */
  settled(keys: readonly string[], at: number | undefined, took = false): Promise<number> {
    return this.#store.change([...keys, this.#key], (found) => {
      const [counts, before] = [countsOf(found.slice(0, -1).flat().map(waitingOf)), arrivedOf(found.at(-1))];
      const after = this.#counted(before, counts, at, took ? this.#windowOf(before, Date.now()) : EVERY);
      return { put: [[this.#key, valued(after)]], remove: keys, result: sum(counts) };
    });
  }

  /** Count reports of a stream that are given up, before they are removed. */
  givenUp(stream: Stream | undefined, number: number, at: number | undefined): Promise<void> {
    return this.#store.change([this.#key], ([kept]) => {
      const counts: ByStream = stream === undefined ? {} : { [stream]: number };
      return { put: [[this.#key, valued(this.#counted(arrivedOf(kept), counts, at, EVERY))]], result: undefined };
    });
  }

  /** Keep with reports that left with this page, which was not closed, that they may have arrived. */
  attempted(keys: readonly string[], window: number): Promise<void> {
    return this.#store.change([...keys], (found) => {
      const put = found.flat().map(([key, value]): Entry => {
        return [key, valued({ ...own(value as unknown as Waiting), window, tried: true })];
      });
      return { put, result: undefined };
    });
  }

  /** Remove reports that left with a page in a window, and count them there; return how many were still in the queue. */
  left(keys: readonly string[], window: number): Promise<number> {
    return this.#store.change([...keys, this.#key], (found) => {
      const counts = countsOf(found.slice(0, -1).flat().map(waitingOf));
      const after = withMore(arrivedOf(found.at(-1)), window, counts);
      return { put: [[this.#key, valued(after)]], remove: keys, result: sum(counts) };
    });
  }

  /** Return whether a window begins more than a window after a moment of the collector's clock. */
  isFar(window: number, at: number): boolean {
    return window > this.after(at);
  }

  /** Return when the window after that of a moment begins. */
  after(moment: number): number {
    return this.#starts().after(moment);
  }

  get #key(): string {
    return arrivedKey(this.#campaign);
  }

  /**
   * Return what is kept after an answer. The count of the next window is kept, because that may have begun at another
   * collector. Counts of later windows come from a collector's wrong clock.
   */
  #heard({ windows }: Arrived, at: number): Arrived {
    const [now, start, following] = [Date.now(), this.#startOf(at), this.after(at)];
    const past = windows.filter(([other]) => other <= following);
    return withMore({ answered: now, ahead: at - now, windows: past }, start, countOf(windows, EVERY));
  }

  #counted(kept: Arrived, counts: ByStream, at: number | undefined, otherwise: number): Arrived {
    return at === undefined ? withMore(kept, otherwise, counts) : withMore(this.#heard(kept, at), this.#startOf(at), counts);
  }

  /** Return the start of the collector's window at a time on the device. */
  #windowOf({ answered, ahead }: Arrived, now: number): number {
    return this.#startOf(now >= answered ? now + ahead : now);
  }

  /**
   * Return how many reports of a stream count in a window or later. Another epoch may list windows that begin a little
   * earlier. They are no earlier windows.
   */
  #cameOf({ windows }: Arrived, stream: Stream, window: number): number {
    const least = window - this.#starts().least;
    return windows.reduce((total, [start, counts]) => total + (start > least ? (own(counts)[stream] ?? 0) : 0), 0);
  }

  /** Return the start of the window of a moment, which may be of any wrong clock. */
  #startOf(moment: number): number {
    return this.#starts().at(moment);
  }
}

/** Return the time of an answer in milliseconds since 1970; undefined without one, or if a cache kept the answer. */
export function timeOf(headers: Headers): number | undefined {
  return headers.get("age") === null ? dateOf(headers.get("date")) : undefined;
}

/** Return the name of the window that begins at a time, in milliseconds since 1970: 20261121T000000Z. */
export function windowName(start: number): string {
  return new Date(start).toISOString().replace(/[-:]|\.\d+/g, "");
}

/** Return the time of a `Date` header in milliseconds since 1970; undefined if it is no IMF-fixdate of RFC 9110. */
export function dateOf(header: string | null): number | undefined {
  const moment = new Date(header ?? "");
  const year = moment.getUTCFullYear();
  return moment.toUTCString() === header && year >= FIRST_YEAR && year <= LAST_YEAR ? moment.getTime() : undefined;
}

function arrivedOf(found: readonly Entry[] | undefined): Arrived {
  return keptOf(valueOf(found));
}

function keptOf(value: Value | undefined): Arrived {
  return own((value ?? NOTHING) as unknown as Arrived);
}

function valued(kept: Arrived | Waiting): Value {
  return { ...kept } as unknown as Value;
}

/** Return what is kept once more reports count in a window. */
function withMore(kept: Arrived, window: number, given: ByStream | undefined): Arrived {
  const [more, before] = [own({ ...given }), own({ ...countOf(kept.windows, window) })];
  const counts: Partial<Record<Stream, number>> = own({});
  for (const stream of STREAMS) counts[stream] = (before[stream] ?? 0) + (more[stream] ?? 0);
  return sum(more) === 0 ? kept : { ...kept, windows: lastChanged(kept.windows, window, counts) };
}

function countsOf(reports: readonly Waiting[]): ByStream {
  const number = (stream: Stream): number => reports.filter((each) => each.stream === stream).length;
  return { reports: number("reports"), discovery: number("discovery") };
}

function sum({ reports = 0, discovery = 0 }: ByStream): number {
  return reports + discovery;
}
