/** Ed25519 for browsers that lack it. This is a separate module, so that no other browser loads the curve. */

import { ed25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";
import type { Group } from "./ed25519.js";

const KEY_BYTES = 32;

/** Return whether the encoding of S B - k A is R, as browsers check; the caller refuses non-strict keys and signatures. */
export function isSignature(
  key: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
  { littleEndian, order }: Group,
): boolean {
  const { Point } = ed25519;
  const commitment = signature.subarray(0, KEY_BYTES);
  const challenge = sha512.create().update(commitment).update(key).update(message).digest();
  try {
    const product = Point.fromBytes(Uint8Array.from(key)).multiplyUnsafe(littleEndian(challenge) % order);
    const scalar = littleEndian(signature.subarray(KEY_BYTES));
    const encoded = Point.BASE.multiplyUnsafe(scalar).subtract(product).toBytes();
    return encoded.every((byte, place) => byte === commitment[place]);
  } catch {
    return false; // The key is not a valid Ed25519 public key.
  }
}
