/** X25519 for a browser without it: a module of its own, so that no other browser loads the curve, and not all of it. */

import { x25519 } from "@noble/curves/ed25519.js";

/** Return the product, or undefined if the point has small order. */
export function multiply(secret: Uint8Array, point: Uint8Array): Uint8Array | undefined {
  try {
    return x25519.scalarMult(secret, point);
  } catch {
    return undefined;
  }
}
