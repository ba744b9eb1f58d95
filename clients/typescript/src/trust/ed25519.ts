/**
 * Ed25519 (RFC 8032), verified as strictly as in libsodium, with the same result in every browser.
 *
 * Browsers treat unusual keys and signatures differently. So some keys and signatures are refused here, before any
 * verification: a key or a point R without its canonical encoding or of small order, and a scalar S that is not below
 * the group's order.
 */

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const FIELD = (1n << 255n) - 19n;
/** The order of the group of the base point. */
const ORDER = (1n << 252n) + 27742317777372353535851937790883648493n;
/** The y coordinates of the points whose order divides 8; with both signs of x these coordinates give eight points. */
const SMALL_ORDER: readonly bigint[] = [
  0n,
  1n,
  FIELD - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
];

/**
 * The facts that the portable module gets as an argument, because a shared import would be one more file for every
 * page.
 */
export interface Group {
  readonly littleEndian: (bytes: Uint8Array) => bigint;
  readonly order: bigint;
}

/** Return whether this key signed exactly this message; false also for malformed keys and signatures. */
export async function verifyEd25519(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  if (!isStrict(key, signature)) return false;
  return (await verifyNatively(key, message, signature)) ?? verifyPortably(key, message, signature);
}

/** Return whether key and R are points of large order in canonical encoding, and S is below the group's order. */
export function isStrict(key: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  const scalar = littleEndian(signature.subarray(KEY_BYTES));
  return isFirmPoint(key) && isFirmPoint(signature.subarray(0, KEY_BYTES)) && scalar < ORDER;
}

/** Verify a strict signature with WebCrypto; undefined if the browser lacks Ed25519. */
export async function verifyNatively(
  key: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean | undefined> {
  const subtle = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  if (subtle === undefined) return undefined;
  try {
    const imported = await subtle.importKey("raw", own(key), { name: "Ed25519" }, false, ["verify"]);
    return await subtle.verify({ name: "Ed25519" }, imported, own(signature), own(message));
  } catch (error) {
    // NotSupportedError means that the browser lacks Ed25519. Any other error means that the key is not a valid Ed25519
    // public key.
    return error instanceof Error && error.name === "NotSupportedError" ? undefined : false;
  }
}

/** Verify a strict signature without WebCrypto. Only this function loads the curve. */
export async function verifyPortably(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const { isSignature } = await import("./ed25519-portable.js");
  return isSignature(key, message, signature, { littleEndian, order: ORDER });
}

function isFirmPoint(encoded: Uint8Array): boolean {
  const y = littleEndian(encoded) & ((1n << 255n) - 1n);
  return y < FIELD && !SMALL_ORDER.includes(y);
}

/** Return a little-endian integer. */
function littleEndian(bytes: Uint8Array): bigint {
  let digits = "0x0";
  for (const byte of bytes.slice().reverse()) digits += byte.toString(16).padStart(2, "0");
  return BigInt(digits);
}

/** Return a copy in its own buffer, as WebCrypto's types require. */
function own(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes);
}
