/** The steps of a sender, as typed data that an app can show; the data contain no value. */

import type { Stream } from "../trust/asked.js";

const MOST_EVENTS = 1000;

/** One step of a sender. */
export interface Event {
  /** Time by this device's clock, in milliseconds since 1970. */
  readonly at: number;
  /**
   * fetched, unchanged, not_fetched: the campaign file. refused: the policy refuses the campaign file. waits: a plain value
   * waits for a campaign file. queued: reports wait to be sent. sent: the collector has the reports. again: reports are
   * sent again later. remade: reports were made again under the present campaign file. dropped: reports were given up;
   * the reason is "left_with_page" if the reports left with a page in an earlier window, and most probably arrived.
   * answered: the evaluation of a discovery report came. not_answered: the evaluation is requested again later. blank:
   * the evaluation did not come, and the report is sent without its value; the reason is "equivocation" if the answer
   * was not made with the campaign's evaluator key. forgotten: reports were deleted at the opt-out. not_queued: a value
   * was not queued, and the reason is a sentence. no_pass: the issuer gave no passes, so reports that need one wait.
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
    | "forgotten"
    | "not_queued"
    | "no_pass";
  readonly reports: number;
  /** The stream of the reports, if they are of one stream. */
  readonly stream?: Stream;
  /** The reason: the collector's name of a problem, or a sentence of this client. A reason contains no value. */
  readonly reason: string;
}

/** The newest events of a sender, at most a thousand. */
export class EventLog {
  #events: Event[] = [];

  /** Add an event now. */
  add(what: Event["what"], reports = 0, reason = "", stream?: Stream): void {
    const event = { at: Date.now(), what, reports, reason };
    this.#events = [...this.#events.slice(1 - MOST_EVENTS), stream === undefined ? event : { ...event, stream }];
  }

  /** Return the events, oldest first. */
  events(): readonly Event[] {
    return this.#events;
  }
}
