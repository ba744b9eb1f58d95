/** X25519 (RFC 7748), with WebCrypto if the browser has it; the curve is loaded only otherwise. */

import { unhex } from "../bytes.js";
import { FormatError } from "../errors.js";

const BASE = Uint8Array.of(9, ...new Uint8Array(31));
/** The bytes before the 32 bytes of a private key in PKCS #8. */
const PKCS8 = unhex("302e020100300506032b656e04220420");

/** Return the public key of a secret of 32 bytes. */
export function publicKey(secret: Uint8Array): Promise<Uint8Array> {
  return x25519(secret, BASE);
}

/**
 * Return the shared secret of a secret and a public key.
 *
 * @throws FormatError the public key has another length than 32, or small order.
 */
export async function x25519(secret: Uint8Array, point: Uint8Array): Promise<Uint8Array> {
  const shared = point.length === 32 ? ((await multiplied(secret, point)) ?? new Uint8Array(32)) : new Uint8Array(32);
  if (shared.every((byte) => byte === 0)) throw new FormatError("a key to seal to is not a valid X25519 public key");
  return shared;
}

async function multiplied(secret: Uint8Array, point: Uint8Array): Promise<Uint8Array | undefined> {
  return (await multiplyNatively(secret, point)) ?? multiplyPortably(secret, point);
}

/** Multiply with WebCrypto; undefined if the browser lacks X25519, or the point has small order. */
export async function multiplyNatively(secret: Uint8Array, point: Uint8Array): Promise<Uint8Array | undefined> {
  const subtle = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  if (subtle === undefined) return undefined;
  const name = "X25519";
  try {
    const [own, other] = await Promise.all([
      subtle.importKey("pkcs8", Uint8Array.from([...PKCS8, ...secret]), { name }, false, ["deriveBits"]),
      subtle.importKey("raw", Uint8Array.from(point), { name }, false, []),
    ]);
    return new Uint8Array(await subtle.deriveBits({ name, public: other }, own, 256));
  } catch {
    return undefined;
  }
}

/** Multiply without WebCrypto; undefined if the point has small order. */
export async function multiplyPortably(secret: Uint8Array, point: Uint8Array): Promise<Uint8Array | undefined> {
  const { multiply } = await import("./x25519-portable.js");
  return multiply(secret, point);
}
