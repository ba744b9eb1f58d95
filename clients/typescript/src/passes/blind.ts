/**
 * Blind RSA signatures: RSABSSA-SHA384-PSS-Deterministic of RFC 9474, with a modulus of 2048 bits and exponent 65537.
 *
 * This arithmetic is not constant in time. It hides the message from the issuer, and not from other programs of the device.
 */

export const KEY_BYTES = 256;
export const SALT_BYTES = 48;
/** 128 bits above the modulus, so that a blinding is uniform up to 2^-128. */
export const BLIND_BYTES = KEY_BYTES + 16;
const HASH_BYTES = 48;
const BLOCK_BYTES = KEY_BYTES - HASH_BYTES - 1;

/** Return EMSA-PSS with SHA-384 and MGF1 (RFC 8017, section 9.1.1), as a number below 2^2047. */
export async function encoded(message: Uint8Array, salt: Uint8Array): Promise<bigint> {
  const hash = await sha("SHA-384", new Uint8Array(8), await sha("SHA-384", message), salt);
  const counters = Array.from({ length: Math.ceil(BLOCK_BYTES / HASH_BYTES) }, (_, counter) => counter);
  const mask = await Promise.all(counters.map((counter) => sha("SHA-384", hash, Uint8Array.of(0, 0, 0, counter))));
  const whole = new Uint8Array(KEY_BYTES);
  whole.set([1, ...salt], BLOCK_BYTES - SALT_BYTES - 1);
  for (let place = 0; place < BLOCK_BYTES; place += 1) {
    whole[place] = (whole[place] ?? 0) ^ (mask[Math.floor(place / HASH_BYTES)]?.[place % HASH_BYTES] ?? 0);
  }
  whole.set([...hash, 0xbc], BLOCK_BYTES);
  whole[0] = (whole[0] ?? 0) & 0x7f;
  return numberOf(whole);
}

/** Return the blinded message (RFC 9474, section 4.2); `blinding` has BLIND_BYTES uniform bytes. */
export function blinded(modulus: bigint, message: bigint, blinding: Uint8Array): Uint8Array {
  return bytesOf((message * raised(numberOf(blinding) % modulus, modulus)) % modulus);
}

/** Return the signature of the message (RFC 9474, section 4.4); undefined if the issuer's answer is no signature. */
export function unblinded(modulus: bigint, message: bigint, blinding: Uint8Array, answer: Uint8Array): Uint8Array | undefined {
  const signature = (numberOf(answer) * inverse(numberOf(blinding) % modulus, modulus)) % modulus;
  return answer.length === KEY_BYTES && raised(signature, modulus) === message ? bytesOf(signature) : undefined;
}

/** Return the hash of bytes, one part after another. */
export async function sha(name: "SHA-256" | "SHA-384", ...parts: readonly Uint8Array[]): Promise<Uint8Array> {
  const joined = Uint8Array.from(parts.flatMap((part) => [...part]));
  return new Uint8Array(await crypto.subtle.digest(name, joined));
}

/** Return the number of big-endian bytes. */
export function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x0${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`);
}

function bytesOf(number: bigint): Uint8Array {
  const digits = number.toString(16).padStart(2 * KEY_BYTES, "0");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Return the power with the exponent 65537, which is 2^16 + 1. */
function raised(base: bigint, modulus: bigint): bigint {
  let power = base;
  for (let bit = 0; bit < 16; bit += 1) power = (power * power) % modulus;
  return (power * base) % modulus;
}

/** Return the inverse by Euclid's algorithm. */
function inverse(number: bigint, modulus: bigint): bigint {
  let [rest, next, factor, later] = [modulus, number, 0n, 1n];
  while (next !== 0n) {
    const times = rest / next;
    [rest, next, factor, later] = [next, rest - times * next, later, factor - times * later];
  }
  return ((factor % modulus) + modulus) % modulus;
}
