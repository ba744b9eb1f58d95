/** Reports that leave with the page: what this tab has queued is sent by requests that outlive it. */

import type { Arrivals } from "./arrivals.js";
import { forgetLeft, noteLeft } from "./left-notes.js";
import { nextTask } from "./making.js";
import { post, type Target } from "./posting.js";
import { batches, isRecent, type Queue, type Queued } from "./queue.js";

/** Browsers let 64 KiB of bodies outlive a page, of all requests together. */
const MOST_BYTES = 60_000;

/**
 * The reports that this tab has queued and not sent: a page that goes has no time to read them from the store.
 *
 * So it sends only those that are not due, which other tabs leave alone, and that the store had a short time ago: an app
 * may deliver early in another tab, and this one may have slept. The others are sent from the store.
 *
 * They also stay in the store until the collector's answer is settled there, by this tab if it lives on. If it does not,
 * nobody hears the answer, and a note says when they left (left-notes.ts). The next page sends the same bytes again in the
 * same window only, where they are counted once (arrivals.ts). Without a note it sends them also later, and they count
 * twice after the operator's grace period. `sendBeacon` is not used: it sends no header, and so not the client token, without which the cap would not hold.
 */
export class Leaving {
  readonly #reports = new Map<string, Queued>();
  #settled: Promise<unknown> = Promise.resolve();

  /** Wait until the answers to what left before are settled in the store, by a page that lives on. */
  async settled(): Promise<void> {
    await this.#settled;
  }

  /** Note reports that were queued. */
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

  /** Ask the store which are still there, and forget the others. */
  async renew(queue: Queue): Promise<void> {
    const asked = [...this.#reports.values()];
    if (asked.length === 0) return;
    const standing = new Map((await queue.standing(asked)).map((report) => [report.key, report]));
    for (const { key } of asked) {
      const report = standing.get(key);
      if (report === undefined) this.#reports.delete(key);
      // It may have been claimed meanwhile.
      else if (this.#reports.has(key)) this.#reports.set(key, report);
    }
  }

  /** Forget all. */
  clear(): void {
    this.#reports.clear();
  }

  /** Send now what fits, without waiting for anything; return how many reports the collector took. */
  send(target: Target, arrivals: Arrivals): Promise<number> {
    const sent = this.#send(target, arrivals);
    this.#settled = Promise.allSettled([this.#settled, sent]);
    return sent;
  }

  async #send(target: Target, arrivals: Arrivals): Promise<number> {
    if (isOffline()) return 0;
    const now = Date.now();
    const mine = [...this.#reports.values()].filter(({ waiting, at }) => waiting.due > now && isRecent(at, now));
    const leaving = batches(mine, MOST_BYTES);
    this.clear();
    const answers = leaving.map(async (reports) => {
      const keys = reports.map(({ key }) => key);
      if (outlivePages()) noteLeft(keys, now);
      const said = await post(target, reports, true);
      const number = said.fate === "sent" ? await arrivals.sent(keys, said.at) : 0;
      // A page that goes is told that its requests failed, though they arrive. It never comes to its next task.
      await nextTask();
      forgetLeft(keys);
      return number;
    });
    return (await Promise.all(answers)).reduce((sum, number) => sum + number, 0);
  }
}

/** Return whether a request may outlive its page: in other browsers, what leaves with a page that goes does not arrive. */
function outlivePages(): boolean {
  return Object.hasOwn(Request.prototype, "keepalive");
}

function isOffline(): boolean {
  return globalThis.navigator?.onLine === false;
}
