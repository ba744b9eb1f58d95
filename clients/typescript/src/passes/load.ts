/** Loads the module that asks an issuer, and gives it the page's functions. */

import { blake2b, concat, hex, unhex, utf8 } from "../bytes.js";
import { DeliveryError } from "../errors.js";
import { part } from "../loading.js";
import { heldUntil, hold, release } from "../sender/hold.js";
import { addressOf, send } from "../sender/http.js";
import { base64Url, collectorName, keyOf, nonceOf, slotOf, type Tokens } from "../sender/token.js";
import { verdict } from "../sender/verdict.js";
import type { Asked } from "../trust/asked.js";
import type * as passes from "./asking.js";

export const TOOLS: passes.Tools = {
  blake2b, concat, hex, unhex, utf8, DeliveryError, heldUntil, hold, release, addressOf, send, base64Url, collectorName, keyOf,
  nonceOf, slotOf, verdict,
};

/** Return the module. Throws DeliveryError if it cannot be loaded now. */
export function loadPasses(): Promise<typeof passes> {
  return part(import("./asking.js"));
}

/** Return tokens that are shown with passes; `asks`: first ask the issuer for passes, if that is due. */
export async function withPasses(given: passes.Circumstances, campaign: Asked, asks: boolean): Promise<Tokens> {
  return (await loadPasses()).withPasses(TOOLS, given, campaign, asks);
}
