/** The meaning of an answer for a batch of reports: sent, to be sent again, to be made again, or given up. */

import { parseJson } from "../json.js";
import { own } from "../own.js";
import { PROBLEM_BYTES, type Answer } from "./http.js";
import { timeOf } from "./arrivals.js";
import { LONGEST_WAIT, retryAfter } from "./timing.js";

const PROBLEM = /^urn:hushcount:problem:([a-z_]{1,40})$/;
const LATER: readonly number[] = [408, 425, 429];
const CLOSED: readonly string[] = ["epoch_closed", "unknown_fingerprint"];
const AGAIN: readonly string[] = ["epoch_not_begun", "window_over"];

/** The outcome of a batch. */
export interface Verdict {
  /**
   * sent: on the collector's disk. again: send the same bytes later. early: send the same bytes when their window begins,
   * after `wait`. refused: send the same bytes later, but only a
   * limited number of times, because the answer is not from the collector. smaller: too many bytes or reports in one
   * request. closed: the collector takes no reports of this campaign file. dropped: no attempt would succeed.
   */
  readonly fate: "sent" | "again" | "early" | "refused" | "smaller" | "closed" | "dropped";
  /** The collector's or this client's name of the problem; letters, digits and underscores only. */
  readonly reason: string;
  /** The other side's Retry-After in milliseconds, at most a day. */
  readonly wait: number;
  /** Time of the collector's answer by its clock, in milliseconds since 1970, if known. */
  readonly at?: number | undefined;
}

/**
 * Return the meaning of an answer to a batch of reports; vectors/v1/answers.json has every case.
 *
 * Reports are given up at once only for a collector's own refusal, which names its problem. The answers of a proxy or
 * of a hotel's network say nothing about the reports, except 413, which from any sender means that a body of this
 * length is not let through.
 *
 * @param window when the window of their token began, in milliseconds since 1970. An answer `window_not_begun` without a
 * time, or with a time in that window, only means that the bytes are sent later.
 */
export function verdict(answer: Answer, reports: number, window = -Infinity): Verdict {
  const { status } = answer;
  const problem = problemOf(answer);
  const at = status === 202 || problem !== "" ? timeOf(answer.headers) : undefined;
  const told = (fate: Verdict["fate"], reason: string, wait = 0): Verdict => ({ fate, reason, wait, at });
  if (status === 202) return told("sent", "");
  if (status === 425 && problem === "window_not_begun" && at !== undefined && at < window) {
    return told("early", problem, Math.min(window - at, LONGEST_WAIT));
  }
  if (LATER.includes(status) || status >= 500) {
    return told("again", problem || `status_${String(status)}`, retryAfter(answer.headers.get("retry-after")));
  }
  if (status === 413) return told(reports > 1 ? "smaller" : "dropped", problem || "too_long");
  if (status < 400 || problem === "") return told("refused", "no_collector");
  if (AGAIN.includes(problem)) return told("again", problem);
  return told(CLOSED.includes(problem) ? "closed" : "dropped", problem);
}

/** Return the name in the problem details of RFC 9457; empty if the answer is not a collector's refusal. */
function problemOf({ media, body }: Answer): string {
  if (media !== "application/problem+json") return "";
  try {
    const { type } = own(parseJson(body, PROBLEM_BYTES, "the answer") as { readonly type?: unknown } | null);
    return typeof type === "string" ? (PROBLEM.exec(type)?.[1] ?? "") : "";
  } catch {
    return "";
  }
}
