/** What asks an evaluator. It gets what the page has already: if it imported that, all pages would load one file more. */

import { part } from "../loading.js";
import { freshBytes } from "../maths/words.js";
import type { Asking, Circumstances, Tools } from "./evaluations.js";
import { send } from "./http.js";
import { isAhead, LONGEST_WAIT, pause, randomTime } from "./timing.js";
import { verdict } from "./verdict.js";

/** Return the evaluations of a page, none yet. Throws DeliveryError if the file cannot be had now. */
export async function loadAsking(given: Omit<Circumstances, keyof Tools>): Promise<Asking> {
  const { Asking } = await part(import("./evaluations.js"));
  return new Asking({ ...given, send, verdict, pause, randomTime, isAhead, freshBytes, longestWait: LONGEST_WAIT });
}
