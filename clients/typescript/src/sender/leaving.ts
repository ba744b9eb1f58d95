/**
 * Reports that leave with the page: when a page closes, this tab's queued reports are sent by requests that outlive the
 * page.
 */

import type { Arrivals } from "./arrivals.js";
import { forgetLeft, noteLeft } from "./left-notes.js";
import { nextTask } from "./making.js";
import { post, type Target } from "./posting.js";
import { batches, isRecent, type Queue, type Queued } from "./queue.js";

/** Browsers let at most 64 KiB of bodies outlive a page, in all requests together. */
const MOST_BYTES = 60_000;

/**
 * The reports that this tab has queued and not sent, in memory, because a page that closes has no time to read the
 * store.
 *
 * A closing page sends only reports that are not due, because other tabs do not send such reports. A closing page also
 * sends only reports that were in the store a short time ago, because an app may deliver early in another tab, and this
 * tab may have slept. All other reports are sent later, from the store.
 *
 * The reports are kept in the store until the collector's answer is settled there, which this tab does if the page is
 * not closed. If the page closes, nobody gets the answer, but a note has the time when the reports left
 * (left-notes.ts). The collector takes them in the present window or never, and the next page sends the same bytes again
 * only in this window, in which equal bytes count once (arrivals.ts). Without a note, a page sends the reports again in
 * later windows too, and after the operator's grace period such reports count twice. `sendBeacon` is not used: it cannot
 * send the header with the client token, without which the cap would have no effect.
 */
export class Leaving {
  readonly #reports = new Map<string, Queued>();
  #settled: Promise<unknown> = Promise.resolve();

  /**
   * Wait until the answers to reports that left are settled in the store; this ends only if the page was not closed.
   */
  async settled(): Promise<void> {
    await this.#settled;
  }

  /** Remember queued reports. */
  add(reports: readonly Queued[]): void {
    for (const report of reports) {
      const { blank, left } = report.waiting;
      if (blank === undefined && left === undefined) this.#reports.set(report.key, report);
    }
  }

  /** Forget reports that are claimed, sent or deleted. */
  remove(keys: Iterable<string>): void {
    for (const key of keys) this.#reports.delete(key);
  }

  /** Ask the store which of the reports it still has, and forget all other reports. */
  async renew(queue: Queue): Promise<void> {
    const asked = [...this.#reports.values()];
    if (asked.length === 0) return;
    const standing = new Map((await queue.standing(asked)).map((report) => [report.key, report]));
    for (const { key } of asked) {
      const report = standing.get(key);
      if (report === undefined) this.#reports.delete(key);
      // The report may have been removed here while the store was read, because it was claimed.
      else if (this.#reports.has(key)) this.#reports.set(key, report);
    }
  }

  /** Forget all reports. */
  clear(): void {
    this.#reports.clear();
  }

  /** Send the reports that fit now, without waiting for anything; return how many reports the collector took. */
  send(target: Target, arrivals: Arrivals): Promise<number> {
    const sent = this.#send(target, arrivals);
    this.#settled = Promise.allSettled([this.#settled, sent]);
    return sent;
  }

  async #send(target: Target, arrivals: Arrivals): Promise<number> {
    if (isOffline()) return 0;
    const now = Date.now();
    const room = new Map<string, number>();
    const has = target.has(target.window);
    const mine = [...this.#reports.values()].filter(({ waiting: { due, window, bound, tried, stream, pass, cap = 0 }, at }) => {
      const isFree = bound === true ? window === target.window : window === undefined;
      if (due <= now || !isRecent(at, now) || !isFree || tried === true || stream === "") return false;
      if (!(has ?? pass !== true)) return false;
      const left = room.get(stream) ?? cap - arrivals.came(stream, target.window);
      room.set(stream, left - 1);
      return left > 0;
    });
    const leaving = batches(mine, MOST_BYTES);
    this.clear();
    const answers = leaving.map(async (reports) => {
      const keys = reports.map(({ key }) => key);
      if (outlivePages()) noteLeft(keys, now, target.window);
      const said = await post(target, reports, true);
      const number = said.fate === "sent" ? await arrivals.settled(keys, said.at, true) : 0;
      // A closing page is told that its requests failed, although they arrive. So failures are handled in the next
      // task, which never runs in a closing page.
      await nextTask();
      if (said.fate !== "sent") await arrivals.attempted(keys, target.window);
      forgetLeft(keys);
      return number;
    });
    return (await Promise.all(answers)).reduce((sum, number) => sum + number, 0);
  }
}

/** Return whether requests may outlive their page: in other browsers, reports of a closing page would not arrive. */
function outlivePages(): boolean {
  return Object.hasOwn(Request.prototype, "keepalive");
}

function isOffline(): boolean {
  return globalThis.navigator?.onLine === false;
}
