/**
 * Loads the module that asks an evaluator. That module gets the page's functions as arguments, because a shared import
 * would be one more file for all pages.
 */

import { part } from "../loading.js";
import { freshBytes } from "../maths/words.js";
import type { Asking, Circumstances, Tools } from "./evaluations.js";
import { send } from "./http.js";
import { isAhead, LONGEST_WAIT, pause, randomTime } from "./timing.js";
import { verdict } from "./verdict.js";

/** Return the empty set of a page's evaluations. Throws DeliveryError if the module cannot be loaded now. */
export async function loadAsking(given: Omit<Circumstances, keyof Tools>): Promise<Asking> {
  const { Asking } = await part(import("./evaluations.js"));
  return new Asking({ ...given, send, verdict, pause, randomTime, isAhead, freshBytes, longestWait: LONGEST_WAIT });
}
