/** What a sender did, as an app may show it: typed, and without any value. */

import type { Stream } from "../trust/asked.js";

const MOST_EVENTS = 1000;

/** One step of a sender. */
export interface Event {
  /** By this device's clock, in milliseconds since 1970. */
  readonly at: number;
  /**
   * fetched, unchanged, not_fetched: the campaign file. refused: the policy refuses it. waits: a plain value waits for a
   * campaign file. queued: reports wait to be sent. sent: the collector has them. again: they are sent again later.
   * remade: made anew under the present campaign file. dropped: given up; with the reason
   * "left_with_page" if it left with a page in an earlier window, and most probably arrived. answered: the evaluation
   * of a discovery report came. not_answered: it is asked for again later. blank: it did not come, and the report goes
   * without its value; with the reason "equivocation" if the answer was not made with the campaign's evaluator key. forgotten:
   * deleted at the opt-out.
   */
  readonly what:
    | "fetched"
    | "unchanged"
    | "not_fetched"
    | "refused"
    | "waits"
    | "queued"
    | "sent"
    | "again"
    | "remade"
    | "dropped"
    | "answered"
    | "not_answered"
    | "blank"
    | "forgotten";
  readonly reports: number;
  /** Of which kind the reports are, if they are of one. */
  readonly stream?: Stream;
  /** Why, in the collector's word or a sentence of ours; no value stands in it. */
  readonly reason: string;
}

/** The newest events of a sender, a thousand at most. */
export class EventLog {
  #events: Event[] = [];

  /** Add an event now. */
  add(what: Event["what"], reports = 0, reason = "", stream?: Stream): void {
    const event = { at: Date.now(), what, reports, reason };
    this.#events = [...this.#events.slice(1 - MOST_EVENTS), stream === undefined ? event : { ...event, stream }];
  }

  /** Return the events, the oldest first. */
  events(): readonly Event[] {
    return this.#events;
  }
}
