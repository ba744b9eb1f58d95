/**
 * The evaluations that a page requests. This is a separate module, because only an oblivious campaign needs it.
 *
 * The sealed blank of each value is in the queue; evaluation and value are in this page's memory only. Each value gets one
 * evaluation, at a random time that does not depend on the value. The finished report replaces the blank in the queue.
 * So exactly one discovery report is sent for each value, even if the page closes or no answer comes.
 */

import type { Budget } from "../budget/budget.js";
import { ELEMENT_BYTES, PROOF_BYTES, type PendingDiscovery } from "../discovery/oblivious.js";
import { DeliveryError, Unanswered } from "../errors.js";
import type { freshBytes } from "../maths/words.js";
import { own } from "../own.js";
import type { Store } from "../store/store.js";
import type { EventLog } from "./events.js";
import type { Answer, send } from "./http.js";
import type { Leaving } from "./leaving.js";
import type { Maker, Measurement } from "./making.js";
import type { Target } from "./posting.js";
import type { Queue, Queued, Waiting } from "./queue.js";
import type { isAhead, pause, randomTime } from "./timing.js";
import type { verdict } from "./verdict.js";

const ANSWER_BYTES = ELEMENT_BYTES + PROOF_BYTES;
const OCTETS = "application/octet-stream";

/** Functions of the page, which are passed in so that this module need not import them. */
export interface Tools {
  readonly send: typeof send;
  readonly verdict: typeof verdict;
  readonly pause: typeof pause;
  readonly randomTime: typeof randomTime;
  readonly isAhead: typeof isAhead;
  readonly longestWait: number;
  readonly freshBytes: typeof freshBytes;
}

/** The inputs of a page's evaluations; times are in milliseconds. */
export interface Circumstances extends Tools {
  readonly store: Store;
  /** The address of the campaign at its evaluator. */
  readonly evaluator: string;
  readonly budget: Budget;
  readonly queue: Queue;
  readonly leaving: Leaving;
  readonly log: EventLog;
  readonly delay: number;
  /** For how long an evaluation is requested again if nobody answers. */
  readonly answerWithin: number;
}

/**
 * An evaluation with its blank. `at` is the time to request it; from `until` on the blank may be sent; both are in
 * milliseconds since 1970.
 */
interface Begun {
  readonly pending: PendingDiscovery;
  readonly at: number;
  readonly until: number;
}

/** An evaluation with its blank in the queue. */
interface Evaluation extends Begun {
  readonly row: Queued;
  /**
   * When the window of the first request began, in milliseconds since 1970. Every request shows the token of this window,
   * so that equal bytes never link two tokens.
   */
  window?: number;
}

/** The outcome of an evaluation: a finished report, or the reason why there is none. */
interface Outcome {
  readonly body?: Uint8Array;
  readonly reason?: string;
  /** Whether the evaluation is requested again, after at least `wait` milliseconds. */
  readonly again?: boolean;
  readonly wait?: number;
}

/** The evaluations of one page that wait for an answer. */
export class Asking {
  readonly #given: Circumstances;
  readonly #open = new Set<Evaluation>();
  /** Evaluations by their blanks. If a blank cannot be queued, both the blank and its evaluation are forgotten. */
  readonly #begun = new WeakMap<Waiting, Begun>();
  #failures = 0;
  /** The end of the pause after failures. This time is in memory only, because evaluations end when the page closes. */
  #heldUntil = 0;

  constructor(given: Circumstances) {
    this.#given = given;
  }

  /** End the pause: the device is online again. */
  resume(): void {
    this.#heldUntil = 0;
  }

  /** Begin the report of a charged value, and return its blank for the queue, with what the queue keeps of it. */
  async begin(maker: Maker, value: string | null, kept: Pick<Waiting, keyof Measurement | "collector" | "cap" | "pass">): Promise<Waiting> {
    const { delay, answerWithin, randomTime, freshBytes } = this.#given;
    const pending = await maker.pendingDiscovery(value);
    const at = Date.now() + randomTime(delay);
    const until = at + answerWithin;
    const { fingerprint } = maker.campaign;
    const waiting = { fingerprint, stream: "discovery", body: pending.blank, ...kept } as const;
    const blank = own<Waiting>({ ...waiting, due: until + randomTime(delay), blank: freshBytes(8).join("-") });
    this.#begun.set(blank, { pending, at, until });
    return blank;
  }

  /** Note queued reports: from now on, the evaluations of blanks among them are requested. */
  add(rows: readonly Queued[]): void {
    for (const row of rows) {
      const begun = this.#begun.get(row.waiting);
      if (begun !== undefined) this.#open.add(own({ ...begun, row }));
    }
  }

  /** Time of the next request for an evaluation, in milliseconds since 1970; infinity if no evaluation waits. */
  next(): number {
    const now = Date.now();
    return Math.max(Math.min(...[...this.#open].map(({ at }) => this.#later(at, now))), this.#later(this.#heldUntil, now));
  }

  /**
   * Request due evaluations, or all evaluations if `early`; return by reason how many reports became blanks.
   *
   * A failed evaluation is requested again after a pause, with the same bytes, until its time `until`. If this time
   * passed while the page slept, the evaluation is still requested once.
   *
   * @param target the campaign and client of the evaluations.
   * @param last an evaluation that fails now is not requested again, and its blank is sent.
   */
  async ask(target: Target, early: boolean, last = false): Promise<Readonly<Record<string, number>>> {
    const blanks: Record<string, number> = {};
    if (await this.#given.budget.optedOut()) this.#open.clear();
    const settle = async (evaluation: Evaluation, outcome: Outcome): Promise<void> => {
      const reason = await this.#settle(evaluation, outcome);
      if (reason !== undefined) blanks[reason] = (blanks[reason] ?? 0) + 1;
    };
    // Evaluations that begin or become due during this call are handled in the next call.
    const now = Date.now();
    const open = [...this.#open];
    const due = (await this.#waiting(open)).filter(({ at }) => early || this.#later(at, now) <= now);
    if (this.#later(this.#heldUntil, now) <= now) {
      // Only evaluations that no other call has requested meanwhile are requested.
      const taken = due.filter((evaluation) => this.#open.delete(evaluation));
      await Promise.all(
        taken.map(async (evaluation) => {
          const outcome = await this.#ask(target, evaluation, early);
          if (outcome !== undefined) await settle(evaluation, outcome);
        }),
      );
    }
    for (const evaluation of open) {
      if ((last || this.#later(evaluation.until, now, 2) <= now) && this.#open.delete(evaluation)) await settle(evaluation, { reason: "no_answer" });
    }
    return blanks;
  }

  /**
   * Return a kept time; or 0 if it is further in the future than `waits` longest waits, which happens after a clock was
   * set back.
   */
  #later(time: number, now: number, waits = 1): number {
    const { isAhead, longestWait } = this.#given;
    return isAhead(time, now, waits * longestWait) ? time : 0;
  }

  /**
   * Return evaluations with a blank that is still in the queue. If a blank was sent or deleted, its evaluation is not
   * requested.
   */
  #waiting(open: readonly Evaluation[]): Promise<readonly Evaluation[]> {
    return this.#given.store.change(
      open.map(({ row }) => row.key),
      (found) => ({ result: open.filter((_, place) => found[place]?.length === 1) }),
    );
  }

  /** Request one evaluation, and return its outcome; undefined if the evaluation is requested again later. */
  async #ask(target: Target, evaluation: Evaluation, keepalive: boolean): Promise<Outcome | undefined> {
    const { log, pause } = this.#given;
    const outcome = own(await this.#answered(target, evaluation, keepalive));
    const { again = false, wait = 0, reason } = outcome;
    if (!again) {
      this.#failures = 0;
      return outcome;
    }
    this.#open.add(evaluation);
    // Evaluations that fail in the same call count as one failure for the length of the pause.
    const now = Date.now();
    if (this.#later(this.#heldUntil, now) <= now) {
      this.#failures += 1;
      this.#heldUntil = now + pause(this.#failures, wait);
    }
    log.add("not_answered", 1, reason, "discovery");
    return undefined;
  }

  async #answered(target: Target, evaluation: Evaluation, keepalive: boolean): Promise<Outcome> {
    const { pending, row, window = target.window } = evaluation;
    const token = target.shown("evaluator", "evaluator", window);
    if (token === undefined) return { reason: "no_pass", again: true };
    evaluation.window = window;
    const url = `${this.#given.evaluator}/evaluations?fingerprint=${row.waiting.fingerprint}`;
    const headers = { "Content-Type": OCTETS, ...token };
    const body = pending.evaluation;
    try {
      const answer = await this.#given.send(target.fetcher, { url, headers, body, keepalive, mostBytes: ANSWER_BYTES });
      return this.#refusalOf(answer) ?? { body: await pending.finish(answer.body) };
    } catch (error) {
      if (error instanceof DeliveryError) return { reason: "no_answer", again: true };
      // The evaluation is not requested again, because an evaluator with a special key for one client could otherwise
      // choose the moment at which it marks the client.
      if (error instanceof Unanswered) return { reason: "equivocation" };
      throw error;
    }
  }

  /** Return why the answer cannot be used; undefined if its form is right. */
  #refusalOf(answer: Answer): Outcome | undefined {
    const { status, media, body } = answer;
    if (status === 200) {
      if (media !== OCTETS) return { reason: "no_evaluator", again: true };
      return body.length === ANSWER_BYTES ? undefined : { reason: "wrong_length", again: true };
    }
    const { fate, reason: said, wait } = this.#given.verdict(answer, 1);
    const reason = said === "" || said === "no_collector" ? "no_evaluator" : said;
    // The evaluation is requested again, because an evaluator that does not know the campaign file yet may soon read
    // this file.
    const again = fate === "again" || fate === "refused" || fate === "sent" || reason === "unknown_fingerprint";
    return again ? { reason, again, wait } : { reason };
  }

  /**
   * Replace the blank by the finished report, or keep the blank; either is sent at a random time. Return why the blank
   * is sent.
   */
  async #settle(evaluation: Evaluation, outcome: Outcome): Promise<string | undefined> {
    const { queue, leaving, log, delay, randomTime } = this.#given;
    const { row } = evaluation;
    const { blank: _, ...waiting } = row.waiting;
    const { body = waiting.body, reason: why } = own(outcome);
    const rows = await queue.replace(row, [own({ ...waiting, body, due: Date.now() + randomTime(delay) })]);
    leaving.add(rows);
    const reason = why ?? (rows.length === 0 ? "too_late" : undefined);
    // The blank was in the queue when the evaluation was requested, but another tab has sent or deleted the blank
    // since.
    if (rows.length === 0 && reason === "no_answer") return undefined;
    log.add(reason === undefined ? "answered" : "blank", 1, reason ?? "", "discovery");
    return reason;
  }
}
