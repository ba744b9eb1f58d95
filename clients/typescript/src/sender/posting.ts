/** One batch of reports on its way to a collector. */

import { concat } from "../bytes.js";
import { DeliveryError } from "../errors.js";
import { dateOf } from "./arrivals.js";
import { send, type Fetch } from "./http.js";
import type { Queued } from "./queue.js";
import type { Tokens } from "./token.js";
import { verdict, type Verdict } from "./verdict.js";

/** The reason that is stated if nobody answered. */
export const NO_ANSWER = "no_answer";

/** The destination and the client of reports. */
export interface Target extends Tokens {
  readonly fetcher: Fetch;
  /** The address of the campaign at its collector. */
  readonly base: string;
}

/** The meaning of an answer, and its time by the collector's clock if known, in milliseconds since 1970. */
export interface Posted extends Verdict {
  readonly at?: number | undefined;
}

/** Send reports of one campaign file and stream; a request that gets no answer is sent again later. */
export async function post(target: Target, reports: readonly Queued[], keepalive: boolean): Promise<Posted> {
  const first = reports[0]?.waiting;
  const url = `${target.base}/${first?.stream ?? ""}?fingerprint=${first?.fingerprint ?? ""}`;
  const headers = { "Content-Type": "application/octet-stream", "Client-Token": target.token };
  const body = concat(...reports.map(({ waiting }) => waiting.body));
  try {
    const answer = await send(target.fetcher, { url, headers, body, keepalive });
    return { ...verdict(answer, reports.length), at: dateOf(answer.headers.get("date")) };
  } catch (error) {
    if (error instanceof DeliveryError) return { fate: "again", reason: NO_ANSWER, wait: 0 };
    throw error;
  }
}
