/**
 * The queue of one campaign: sealed reports, and plain values if the app keeps them; all tabs share it.
 *
 * A key begins with the time when the report is due. A tab claims a report by moving it to the end of a lease. Until
 * then no other tab sends the report, and if the tab is killed, the report is due again at the end of the lease. A tab
 * that slept must not rely on earlier reads of the store, because another tab may have sent a report meanwhile, and
 * equal bytes count once only within the operator's grace period.
 *
 * A claim freezes the window of a report's first attempt, so that the same bytes always travel under the same client
 * token, and takes a place under the cap before the report leaves. The report keeps its place in every window until it
 * is settled, because it may arrive in any of them (arrivals.ts).
 */

import { hex } from "../bytes.js";
import { BUDGET_KEY } from "../budget/budget.js";
import { chargedOf, requireOptedIn } from "../budget/ledger.js";
import { QueueFull } from "../errors.js";
import { freshBytes } from "../maths/words.js";
import { own } from "../own.js";
import { valueOf, type Entry, type Store, type Value, type Wanted } from "../store/store.js";
import type { Stream } from "../trust/asked.js";
import { forgetAllLeft, forgetLeft, leftAt } from "./left-notes.js";
import type { Measurement } from "./making.js";
import { isAhead, LONGEST_WAIT } from "./timing.js";

const TIME_DIGITS = 14;
/**
 * A lease is more than twice as long as the longest request. A request begins in the first half of the lease, so it
 * ends before the lease does.
 */
export const LEASE = 300_000;
/** The largest number of reports in one claim, because reading more reports would block the page too long. */
const MOST_CLAIMED = 128;
/** The greatest number of records that can be requested from IndexedDB. */
export const ALL = 2 ** 32 - 1;
const PREFIX = "queue/";

/**
 * A waiting report, or a plain value that waits for a campaign file. A plain value has no fingerprint and no body. A report
 * has the plain value and the coordinates only if the app keeps values: in a new epoch a new report is made from them.
 */
export interface Waiting extends Partial<Measurement> {
  /** Fingerprint of the campaign file that the report was made with. */
  readonly fingerprint: string;
  /** The stream; empty for a plain value, which is for all streams. */
  readonly stream: Stream | "";
  readonly body: Uint8Array;
  /** In milliseconds since 1970. */
  readonly due: number;
  /** How often anyone else than the collector refused the report. */
  readonly refusals?: number;
  /** The end of a blank's key: a finished report may replace the blank, so the blank is not sent before it is due. */
  readonly blank?: string;
  /**
   * Time when the report left with a page without an answer, in milliseconds since 1970. Such a report most probably
   * arrived, in `window` and no other.
   */
  readonly left?: number;
  /** The collector's name in the campaign file, and the cap of the report's stream; absent for a plain value. */
  readonly collector?: string;
  readonly cap?: number;
  /** The report is shown with a pass, and never without. */
  readonly pass?: true;
  /** When the window of the first attempt began, in milliseconds since 1970; absent before it, unless `bound`. */
  readonly window?: number;
  /** With noise of the mixes: the report names `window` itself, and counts in no other one. */
  readonly bound?: true;
  /** Whether an attempt may have arrived, or may still arrive, in any window. */
  readonly tried?: boolean;
}

/** The window in which a claim sends, and how to read the record that counts reports (arrivals.ts). */
export interface Turn {
  /** When the collector's present window began, in milliseconds since 1970. */
  readonly window: number;
  /** The record's key. */
  readonly key: string;
  /** Return how many reports of a stream came in a window or later. */
  came(kept: Value | undefined, stream: Stream, window: number): number;
}

/** A report under its key. */
export interface Queued {
  readonly key: string;
  readonly waiting: Waiting;
  /** Time when the store had the report under this key, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the report was claimed now, and no earlier attempt may have arrived. */
  readonly isNew?: boolean;
}

/** Limits of one request. */
export interface Bounds {
  readonly reports: number;
  readonly bytes: number;
}

/**
 * Claimed reports of one campaign file, stream and token, or claimed plain values; no other tab sends these until the
 * lease ends.
 */
export interface Claimed {
  /** The first report that was due, also if it was removed. */
  readonly of: Waiting;
  readonly reports: readonly Queued[];
  /** How many reports were removed, because there is no room for them. There may be no others. */
  readonly over: number;
  /** The keys that the reports had before the claim. */
  readonly from: readonly string[];
  /** Time of the claim. */
  readonly at: number;
}

/**
 * Return whether a page may rely on a read of the store: it may not if it slept since the read, or if its clock was set
 * back.
 */
export function isRecent(at: number, now: number): boolean {
  return at <= now && now < at + LEASE / 2;
}

/** The queue of one campaign in a store, with a limit on its number of reports. */
export class Queue {
  readonly #store: Store;
  readonly #campaign: string;
  readonly #prefix: string;
  readonly #most: number;

  constructor(store: Store, campaign: string, most: number) {
    this.#store = store;
    this.#campaign = campaign;
    this.#prefix = queuePrefix(campaign);
    this.#most = most;
  }

  /** Throw QueueFull if this number of further reports does not fit. */
  requireRoom(reports: number): Promise<void> {
    return this.#store.change([this.#count()], ([count]) => {
      this.#require(Number(valueOf(count)) + reports);
      return { result: undefined };
    });
  }

  /**
   * Queue all these reports or none, unless the person opted out meanwhile. Throws QueueFull if the reports do not fit
   * into the queue.
   */
  put(waiting: readonly Waiting[]): Promise<Queued[]> {
    const queued = waiting.map((each) => this.#placed(each, each.due, Date.now()));
    return this.#store.change([this.#count(), BUDGET_KEY], ([count, budget]) => {
      requireOptedIn(chargedOf(valueOf(budget)));
      this.#require(Number(valueOf(count)) + waiting.length);
      return { put: queued.map(entryOf), result: queued };
    });
  }

  /**
   * Claim due reports, all of one campaign file, stream and token, earliest first; undefined if no report is due. Either
   * all claimed reports left with a page, at the same time, or no claimed report left with a page.
   *
   * Each claimed report has a place under the cap. Reports for which there is no room are removed.
   *
   * @param most limits of the claim; at least one report is claimed in any case.
   * @param plain claim plain values too.
   * @param early claim also reports that are not due yet.
   * @param turn the present window.
   * @param asked time when this page last began to ask for evaluations: blanks that became due later are not claimed.
   * @param has whether there is a pass for the present window: without one, no untried report goes. undefined: passes
   * cannot be shown, so no report goes that needs one.
   */
  async claim(
    now: number,
    most: Bounds,
    plain: boolean,
    early: boolean,
    turn: Turn,
    asked = now,
    has?: boolean,
  ): Promise<Claimed | undefined> {
    const isFree = (report: Queued): boolean => {
      const { blank, fingerprint, left, pass, tried, window = turn.window } = report.waiting;
      // A report that was refused because its window had not begun waits for its window, even if `early`.
      const isEarly = early && (left !== undefined || window <= turn.window);
      const until = blank !== undefined ? asked : isEarly ? Infinity : now;
      const goes = fingerprint === "" ? plain : (has ?? pass !== true) || (has === false && tried === true);
      return !isLeased(report, now) && goes && isDue(report.waiting, until);
    };
    let claimed = await this.#claimed(now, most, turn, isFree, MOST_CLAIMED);
    // There may be no room, so all waiting reports are read, to keep the places of those that may have arrived.
    if (claimed === "scarce") claimed = await this.#claimed(now, most, turn, isFree, ALL);
    if (claimed === undefined || claimed === "scarce") return undefined;
    forgetLeft(claimed.from);
    return claimed;
  }

  #claimed(
    now: number,
    most: Bounds,
    turn: Turn,
    isFree: (report: Queued) => boolean,
    read: number,
  ): Promise<Claimed | "scarce" | undefined> {
    const wanted = [{ prefix: this.#prefix, most: read }, this.#count(), turn.key];
    return this.#store.change<Claimed | "scarce" | undefined>(wanted, ([found = [], count, record]) => {
      const all = found.map((entry) => queuedOf(entry, now));
      const due = all.filter(isFree);
      const [first] = due;
      if (first === undefined) return { result: undefined };
      const of = first.waiting;
      const { fingerprint, stream, body, left, collector, cap = 0, window = turn.window } = of;
      const number = Math.max(1, Math.min(most.reports, Math.floor(most.bytes / Math.max(1, body.length))));
      const isAlike = (other: Waiting): boolean =>
        other.fingerprint === fingerprint &&
        other.stream === stream &&
        other.left === left &&
        other.collector === collector &&
        (other.cap ?? 0) === cap &&
        (other.window ?? turn.window) === window;
      const taken = due.filter(({ waiting }) => isAlike(waiting)).slice(0, number);
      const from = taken.map(({ key }) => key);
      // A report that left with a page in another window is not sent again.
      if (fingerprint === "" || stream === "" || isPast(of, turn.window)) {
        const reports = taken.map(({ waiting }) => this.#placed(waiting, now + LEASE, now));
        return { put: reports.map(entryOf), remove: from, result: { of, reports, from, over: 0, at: now } };
      }
      const free = cap - turn.came(valueOf(record), stream, window);
      if (read !== ALL && Number(valueOf(count)) > Math.max(free, found.length)) return { result: "scarce" };
      // A report may arrive in its window or in any later one, so it needs room beside all reports that may.
      const holds = ({ waiting }: Queued): boolean => waiting.stream === stream && mayArrive(waiting, window);
      let room = free - all.filter(holds).length;
      const reports = taken.flatMap(({ waiting }) => {
        const isNew = left === undefined && waiting.tried !== true;
        if (isNew && room-- <= 0) return [];
        const placed = isNew ? own({ ...waiting, window, tried: true }) : waiting;
        return [{ ...this.#placed(placed, now + LEASE, now), isNew }];
      });
      const over = taken.length - reports.length;
      return { put: reports.map(entryOf), remove: from, result: { of, reports, from, over, at: now } };
    });
  }

  /** Remove reports that are sent or given up; return how many were still in the queue. */
  remove(keys: readonly string[]): Promise<number> {
    return this.#store.change(keys, (found) => ({
      remove: keys,
      result: found.filter(({ length }) => length === 1).length,
    }));
  }

  /**
   * End a claim, so that its reports are due at `due`, or as before. Reports that another tab has claimed are not
   * changed.
   */
  giveBack(reports: readonly Queued[], due?: number): Promise<Queued[]> {
    return this.#moved(reports, ({ waiting }) => [due === undefined ? waiting : own({ ...waiting, due })]);
  }

  /** End a claim of reports that somebody other than the collector refused once more. */
  giveBackRefused(reports: readonly Queued[], due: number): Promise<Queued[]> {
    return this.#moved(reports, ({ waiting }) => [own({ ...waiting, due, refusals: (waiting.refusals ?? 0) + 1 })]);
  }

  /**
   * End a claim of reports that came before their window: they have not arrived, and become due at `due`. A report of
   * which an earlier attempt may have arrived keeps its place.
   */
  putOff(reports: readonly Queued[], due: number): Promise<Queued[]> {
    return this.#moved(reports, ({ waiting, isNew }) => [own({ ...waiting, due, ...(isNew === true ? { tried: false } : {}) })]);
  }

  /** Replace a claimed report by other reports; do nothing if the report is gone, or claimed by another tab. */
  replace(claimed: Queued, waiting: readonly Waiting[]): Promise<Queued[]> {
    return this.#moved([claimed], () => waiting);
  }

  /** Return the given reports that are still in the queue, and that no tab has claimed. */
  standing(reports: readonly Queued[]): Promise<Queued[]> {
    const at = Date.now();
    return this.#store.change([{ prefix: this.#prefix, most: ALL, values: false }], ([keys = []]) => {
      const there = new Set(keys.map(([key]) => key));
      return { result: reports.filter(({ key }) => there.has(key)).map((report) => ({ ...report, at })) };
    });
  }

  /** Return the number of waiting reports and plain values, including claimed reports and values. */
  waiting(): Promise<number> {
    return this.#store.change([this.#count()], ([count]) => ({ result: Number(valueOf(count)) }));
  }

  /**
   * Return the time when the next unclaimed report is due, in milliseconds since 1970; undefined without such a report.
   */
  nextDue(now: number): Promise<number | undefined> {
    return this.#store.change([{ prefix: this.#prefix, most: 1 }], ([found = []]) => {
      const [first] = found.map((entry) => queuedOf(entry, now));
      if (first === undefined) return { result: undefined };
      return { result: !isLeased(first, now) && isDue(first.waiting, now) ? now : timeOf(first.key) };
    });
  }

  /** Remove all waiting reports, even if there are more than this tab's limit; return how many there were. */
  clear(): Promise<number> {
    return this.#clear(this.#prefix);
  }

  /** Remove all waiting reports of every campaign in the store. */
  clearAll(): Promise<number> {
    return this.#clear(PREFIX);
  }

  async #clear(prefix: string): Promise<number> {
    const number = await this.#store.change([{ prefix, most: ALL, values: false }], ([keys = []]) => ({
      remove: keys.map(([key]) => key),
      result: keys.length,
    }));
    forgetAllLeft(prefix);
    return number;
  }

  #moved(reports: readonly Queued[], become: (report: Queued) => readonly Waiting[]): Promise<Queued[]> {
    const [keys, at] = [reports.map(({ key }) => key), Date.now()];
    return this.#store.change(keys, (found) => {
      const mine = reports.filter((_, place) => found[place]?.length === 1);
      const queued = mine.flatMap(become).map((waiting) => this.#placed(waiting, waiting.due, at));
      return { put: queued.map(entryOf), remove: mine.map(({ key }) => key), result: queued };
    });
  }

  #count(): Wanted {
    return { prefix: this.#prefix, count: true };
  }

  /** Return a report with the key under which it is due at `time`. */
  #placed(waiting: Waiting, time: number, at: number): Queued {
    const digits = String(Math.floor(Math.max(0, time))).padStart(TIME_DIGITS, "0");
    const end = waiting.blank ?? hex(freshBytes(8));
    return { key: `${this.#prefix}${digits}-${end}`, waiting, at };
  }

  #require(reports: number): void {
    if (reports <= this.#most) return;
    throw new QueueFull(
      `${String(reports)} reports of campaign ${this.#campaign} would wait to be sent, must be at most ` +
        `${String(this.#most)}: deliver them, or give a larger mostQueued`,
    );
  }
}

/**
 * Return whether another tab has claimed a report. The bound is twice the lease, because another tab may have claimed
 * the report later than `now`.
 */
function isLeased({ key, waiting }: Queued, now: number): boolean {
  return timeOf(key) !== Math.floor(waiting.due) && isAhead(timeOf(key), now, 2 * LEASE);
}

/**
 * Return whether a report is due. A blank waits at most three days: a delay before the evaluation is requested, the
 * wait for the answer, and another delay.
 */
function isDue({ due, blank }: Waiting, now: number): boolean {
  return !isAhead(due, now, (blank === undefined ? 1 : 3) * LONGEST_WAIT + LEASE);
}

/** Return whether a report is given up, because its window is not the present one: it may have arrived, or is late. */
export function isPast({ left, bound, window = 0 }: Waiting, present: number): boolean {
  return (left !== undefined && window !== present) || (bound === true && window < present);
}

/** Return the prefix of keys of a campaign's queue. */
export function queuePrefix(campaign: string): string {
  return `${PREFIX}${campaign}/`;
}

/** Return whether a report may have arrived in a window or later, or may still arrive. */
export function mayArrive({ tried = false, left, window = 0 }: Waiting, since: number): boolean {
  return tried || (left !== undefined && window >= since);
}

function timeOf(key: string): number {
  return Number(key.slice(key.lastIndexOf("/") + 1).slice(0, TIME_DIGITS));
}

function entryOf({ key, waiting }: Queued): Entry {
  return [key, { ...waiting } as unknown as Value];
}

/** Return the contents of a record; if the report left with a page, with the time and the window from its note. */
export function waitingOf([key, value]: Entry): Waiting {
  const waiting = own(value as unknown as Waiting);
  const note = waiting.left === undefined ? leftAt(key) : undefined;
  return note === undefined ? waiting : own({ ...waiting, left: note.at, window: waiting.window ?? note.window });
}

function queuedOf(entry: Entry, at: number): Queued {
  return { key: entry[0], waiting: waitingOf(entry), at };
}

/**
 * Group reports into requests, each of one campaign file, stream and token; all requests together have at most
 * `mostBytes`.
 */
export function batches(reports: readonly Queued[], mostBytes: number): readonly (readonly Queued[])[] {
  const batches = new Map<string, Queued[]>();
  let bytes = 0;
  for (const report of reports) {
    const { fingerprint, stream, body, collector, window } = report.waiting;
    bytes += body.length;
    if (fingerprint === "" || bytes > mostBytes) continue;
    const name = JSON.stringify([fingerprint, stream, collector, window]);
    batches.set(name, [...(batches.get(name) ?? []), report]);
  }
  return [...batches.values()];
}
