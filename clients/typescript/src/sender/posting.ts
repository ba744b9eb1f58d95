/** One batch of reports on its way to a collector. */

import { concat } from "../bytes.js";
import { DeliveryError } from "../errors.js";
import { windowName } from "./arrivals.js";
import { own } from "../own.js";
import { send, type Fetch } from "./http.js";
import type { Queued } from "./queue.js";
import type { Tokens } from "./token.js";
import { verdict, type Verdict } from "./verdict.js";

/** The reason that is stated if nobody answered. */
export const NO_ANSWER = "no_answer";

/** The destination and the client of reports. */
export interface Target extends Tokens {
  readonly fetcher: Fetch;
  /** When the present window began, in milliseconds since 1970. */
  readonly window: number;
  /** Return when the window after that of a moment begins. */
  after(moment: number): number;
  /** The address of the campaign at its collector. */
  readonly base: string;
}

/**
 * Send reports of one campaign file, stream and token; a request that gets no answer is sent again later.
 *
 * Reports that leave with a page, those that left, and those that name their window are taken in their window or never.
 *
 * @param keepalive the request outlives the page.
 */
export async function post(target: Target, reports: readonly Queued[], keepalive: boolean): Promise<Verdict> {
  const { stream = "", fingerprint = "", collector = "", left, bound, window = target.window } = own({ ...reports[0]?.waiting });
  const until = keepalive || left !== undefined || bound === true ? `&until=${windowName(target.after(window))}` : "";
  const url = `${target.base}/${stream}?fingerprint=${fingerprint}&window=${windowName(window)}${until}`;
  const token = target.shown("collector", collector, window);
  // The pass is too old to be kept. The bytes may have arrived under it, so they do not get another one.
  if (token === undefined) return { fate: "dropped", reason: "wrong_slot", wait: 0 };
  const headers = { "Content-Type": "application/octet-stream", ...token };
  const body = concat(...reports.map(({ waiting }) => waiting.body));
  try {
    return verdict(await send(target.fetcher, { url, headers, body, keepalive }), reports.length, window);
  } catch (error) {
    if (error instanceof DeliveryError) return { fate: "again", reason: NO_ANSWER, wait: 0, at: undefined };
    throw error;
  }
}
