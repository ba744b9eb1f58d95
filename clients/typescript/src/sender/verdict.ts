/** What the answer to a batch of reports means for them: sent, to be sent again, to be made anew, or given up. */

import { parseJson } from "../json.js";
import { own } from "../own.js";
import { PROBLEM_BYTES, type Answer } from "./http.js";
import { retryAfter } from "./timing.js";

const PROBLEM = /^urn:hushcount:problem:([a-z_]{1,40})$/;
const LATER: readonly number[] = [408, 425, 429];
const CLOSED: readonly string[] = ["epoch_closed", "unknown_fingerprint"];

/** What becomes of a batch. */
export interface Verdict {
  /**
   * sent: on the collector's disk. again: send the same bytes later. refused: the same, but not for ever, because the
   * answer is not the collector's. smaller: too many bytes or reports at once. closed: the collector takes no reports of
   * this campaign file. dropped: no attempt would succeed.
   */
  readonly fate: "sent" | "again" | "refused" | "smaller" | "closed" | "dropped";
  /** The collector's name of the problem, or ours; letters, digits and underscores only. */
  readonly reason: string;
  /** Milliseconds that the other side asked for, a day at most. */
  readonly wait: number;
}

/**
 * Return what an answer to a batch of so many reports means: vectors/v1/answers.json has every case.
 *
 * Only a collector's own refusal, which names its problem, gives reports up at once. A page of a hotel's network or a proxy
 * says nothing about them, except 413: whoever says it, this many bytes do not pass.
 */
export function verdict(answer: Answer, reports: number): Verdict {
  const { status } = answer;
  const problem = problemOf(answer);
  const told = (fate: Verdict["fate"], reason: string, wait = 0): Verdict => ({ fate, reason, wait });
  if (status === 202) return told("sent", "");
  if (LATER.includes(status) || status >= 500) {
    return told("again", problem || `status_${String(status)}`, retryAfter(answer.headers.get("retry-after")));
  }
  if (status === 413) return told(reports > 1 ? "smaller" : "dropped", problem || "too_long");
  if (status < 400 || problem === "") return told("refused", "no_collector");
  if (problem === "epoch_not_begun") return told("again", problem);
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
