/**
 * X25519 for browsers that lack it. This is a separate module, so that other browsers do not load the curve, and a
 * bundler can leave out the curve's unused parts.
 */

import { x25519 } from "@noble/curves/ed25519.js";

/** Return the product, or undefined if the point has small order. */
export function multiply(secret: Uint8Array, point: Uint8Array): Uint8Array | undefined {
  try {
    return x25519.scalarMult(secret, point);
  } catch {
    return undefined;
  }
}
