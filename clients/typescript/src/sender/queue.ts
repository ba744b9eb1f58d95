/**
 * What waits to be sent for one campaign: sealed reports, and plain values if the app keeps them; all tabs share it.
 *
 * A key begins with the time when the report is due. To claim a report is to move it to the end of a lease: no other tab
 * sends it meanwhile, and after a tab that was killed it is due again. A tab that slept may not go by what it read before:
 * another tab may have sent it, and the same bytes are counted once only within the operator's grace period.
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
import { isAhead, LONGEST_WAIT } from "./timing.js";

const TIME_DIGITS = 14;
/** Twice as long as any request, and more: one begins in the first half. */
export const LEASE = 300_000;
/** Most reports of one claim: reading more would keep the page from its work. */
const MOST_CLAIMED = 128;
/** The largest number of records that IndexedDB can be asked for. */
export const ALL = 2 ** 32 - 1;
const PREFIX = "queue/";

/** A report that waits, or a plain value that waits for a campaign file: that has no fingerprint and no body. */
export interface Waiting {
  /** Fingerprint of the campaign file that it was made with. */
  readonly fingerprint: string;
  /** Empty for a plain value of all streams. */
  readonly stream: Stream | "";
  readonly body: Uint8Array;
  /** The plain value, only if the app keeps values: the report is then made anew under a new epoch. */
  readonly value?: string;
  /** In milliseconds since 1970. */
  readonly due: number;
  /** How often somebody else than the collector refused it. */
  readonly refusals?: number;
  /** Ends the key of a blank, in whose place a finished report may come: it is not sent before it is due. */
  readonly blank?: string;
  /** When it left with a page that heard no answer, in milliseconds since 1970: most probably it arrived. */
  readonly left?: number;
}

/** A report under its key. */
export interface Queued {
  readonly key: string;
  readonly waiting: Waiting;
  /** When the store was asked, which then had it under this key, in milliseconds since 1970. */
  readonly at: number;
}

/** Bounds of one request. */
export interface Bounds {
  readonly reports: number;
  readonly bytes: number;
}

/** Reports of one campaign file and stream, or plain values, that no other tab sends until the lease ends. */
export interface Claimed {
  readonly reports: readonly Queued[];
  /** The keys that they had before. */
  readonly from: readonly string[];
  /** When they were claimed. */
  readonly at: number;
}

/** Return whether a page may go by what the store said at a moment: not if it slept meanwhile, or its clock was set back. */
export function isRecent(at: number, now: number): boolean {
  return at <= now && now < at + LEASE / 2;
}

/** The queue of one campaign in a store, of at most so many reports. */
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

  /** Throw QueueFull if so many more do not fit. */
  requireRoom(reports: number): Promise<void> {
    return this.#store.change([this.#count()], ([count]) => {
      this.#require(Number(valueOf(count)) + reports);
      return { result: undefined };
    });
  }

  /** Queue reports, all or none, unless the person opted out meanwhile. Throws QueueFull if there is no room. */
  put(waiting: readonly Waiting[]): Promise<Queued[]> {
    const queued = waiting.map((each) => this.#placed(each, each.due, Date.now()));
    return this.#store.change([this.#count(), BUDGET_KEY], ([count, budget]) => {
      requireOptedIn(chargedOf(valueOf(budget)));
      this.#require(Number(valueOf(count)) + waiting.length);
      return { put: queued.map(entryOf), result: queued };
    });
  }

  /**
   * Claim reports that are due, all of one campaign file and stream, the earliest first; undefined if there is none. All or
   * none of them left with a page, at one moment.
   *
   * @param most of one claim, but always one report.
   * @param plain claim plain values too.
   * @param early claim also what is not due yet.
   * @param asked when this page last began to ask: a blank that is due only since then is not claimed.
   */
  async claim(now: number, most: Bounds, plain: boolean, early: boolean, asked = now): Promise<Claimed | undefined> {
    const claimed = await this.#store.change([{ prefix: this.#prefix, most: MOST_CLAIMED }], ([found = []]) => {
      const due = found.map((entry) => queuedOf(entry, now)).filter((report) => {
        const { blank, fingerprint } = report.waiting;
        const until = blank !== undefined ? asked : early ? Infinity : now;
        return !isLeased(report, now) && (plain || fingerprint !== "") && isDue(report.waiting, until);
      });
      const first = due[0];
      if (first === undefined) return { result: undefined };
      const { fingerprint, stream, body, left } = first.waiting;
      const number = Math.max(1, Math.min(most.reports, Math.floor(most.bytes / Math.max(1, body.length))));
      const isAlike = (other: Waiting): boolean =>
        other.fingerprint === fingerprint && other.stream === stream && other.left === left;
      const alike = due.filter(({ waiting }) => isAlike(waiting));
      const taken = alike.slice(0, number);
      const reports = taken.map(({ waiting }) => this.#placed(waiting, now + LEASE, now));
      const from = taken.map(({ key }) => key);
      return { put: reports.map(entryOf), remove: from, result: { reports, from, at: now } };
    });
    if (claimed !== undefined) forgetLeft(claimed.from);
    return claimed;
  }

  /** Remove reports that are sent or given up; return how many were still there. */
  remove(keys: readonly string[]): Promise<number> {
    return this.#store.change(keys, (found) => ({
      remove: keys,
      result: found.filter(({ length }) => length === 1).length,
    }));
  }

  /** End a claim: its reports are due at a moment, or as they were. Those that another tab has claimed stay there. */
  giveBack(reports: readonly Queued[], due?: number): Promise<Queued[]> {
    return this.#moved(reports, ({ waiting }) => [due === undefined ? waiting : own({ ...waiting, due })]);
  }

  /** The same of reports that somebody else than the collector refused once more. */
  giveBackRefused(reports: readonly Queued[], due: number): Promise<Queued[]> {
    return this.#moved(reports, ({ waiting }) => [own({ ...waiting, due, refusals: (waiting.refusals ?? 0) + 1 })]);
  }

  /** Put reports in the place of a claimed one; nothing if it is gone, or claimed by another tab. */
  replace(claimed: Queued, waiting: readonly Waiting[]): Promise<Queued[]> {
    return this.#moved([claimed], () => waiting);
  }

  /** Return those of some reports that are still there, and that no tab has claimed. */
  standing(reports: readonly Queued[]): Promise<Queued[]> {
    const at = Date.now();
    return this.#store.change([{ prefix: this.#prefix, most: ALL, values: false }], ([keys = []]) => {
      const there = new Set(keys.map(([key]) => key));
      return { result: reports.filter(({ key }) => there.has(key)).map((report) => ({ ...report, at })) };
    });
  }

  /** Return how many reports and plain values wait, claimed ones too. */
  waiting(): Promise<number> {
    return this.#store.change([this.#count()], ([count]) => ({ result: Number(valueOf(count)) }));
  }

  /** Return when the next report is due that no tab has claimed, in milliseconds since 1970; undefined without any. */
  nextDue(now: number): Promise<number | undefined> {
    return this.#store.change([{ prefix: this.#prefix, most: 1 }], ([found = []]) => {
      const [first] = found.map((entry) => queuedOf(entry, now));
      if (first === undefined) return { result: undefined };
      return { result: !isLeased(first, now) && isDue(first.waiting, now) ? now : timeOf(first.key) };
    });
  }

  /** Remove all that waits, also what other tabs with a larger limit queued; return how many there were. */
  clear(): Promise<number> {
    return this.#clear(this.#prefix);
  }

  /** Remove the same of every campaign in the store. */
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

  /** Return a report under its key at a time. */
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

/** Return whether another tab has claimed a report. Twice the lease, because it may have done so after `now` was read. */
function isLeased({ key, waiting }: Queued, now: number): boolean {
  return timeOf(key) !== Math.floor(waiting.due) && isAhead(timeOf(key), now, 2 * LEASE);
}

/**
 * Return whether a report is due. An evaluation waits a delay and then for its answer, at most a day each, and its report
 * another delay.
 */
function isDue({ due, blank }: Waiting, now: number): boolean {
  return !isAhead(due, now, (blank === undefined ? 1 : 3) * LONGEST_WAIT + LEASE);
}

/** Return what keys of a campaign's queue begin with. */
export function queuePrefix(campaign: string): string {
  return `${PREFIX}${campaign}/`;
}

function timeOf(key: string): number {
  return Number(key.slice(key.lastIndexOf("/") + 1).slice(0, TIME_DIGITS));
}

function entryOf({ key, waiting }: Queued): Entry {
  return [key, { ...waiting } as unknown as Value];
}

/** Return what a record says, and the note of a page that it left with. */
export function waitingOf([key, value]: Entry): Waiting {
  const waiting = own(value as unknown as Waiting);
  const left = waiting.left ?? leftAt(key);
  return left === undefined ? waiting : own({ ...waiting, left });
}

function queuedOf(entry: Entry, at: number): Queued {
  return { key: entry[0], waiting: waitingOf(entry), at };
}

/** Return reports by request, each of one campaign file and stream, as many as fit into so many bytes together. */
export function batches(reports: readonly Queued[], mostBytes: number): readonly (readonly Queued[])[] {
  const batches = new Map<string, Queued[]>();
  let bytes = 0;
  for (const report of reports) {
    const { fingerprint, stream, body } = report.waiting;
    bytes += body.length;
    if (fingerprint === "" || bytes > mostBytes) continue;
    const name = `${fingerprint}/${stream}`;
    batches.set(name, [...(batches.get(name) ?? []), report]);
  }
  return [...batches.values()];
}
