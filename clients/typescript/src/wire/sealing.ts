/** Sealed boxes of libsodium, which only the owner of the private key can open, and not the sealer. */

import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { blake2b, concat } from "../bytes.js";
import { publicKey, x25519 } from "./x25519.js";

/** The difference in length between a box and its content. */
export const SEAL_BYTES = 48;
/** Length of the secret of a box. */
export const SECRET_BYTES = 32;

/**
 * Seal so that every client with this key and content makes the same box.
 *
 * Privacy: a holder of the key can test guesses of the content against the box.
 */
export async function sealAlike(to: Uint8Array, plain: Uint8Array, key: Uint8Array): Promise<Uint8Array> {
  const seed = blake2b(concat(to, plain), { length: SECRET_BYTES, person: "seal alike", key });
  return sealBy((await sha512(seed)).subarray(0, SECRET_BYTES), to, plain);
}

/** Seal with an ephemeral secret of 32 random bytes, which is wiped. Throws FormatError if `to` is no X25519 key. */
export async function sealBy(secret: Uint8Array, to: Uint8Array, plain: Uint8Array): Promise<Uint8Array> {
  const [ephemeral, shared] = await Promise.all([publicKey(secret), x25519(secret, to)]);
  const nonce = blake2b(concat(ephemeral, to), { length: 24 });
  const box = xsalsa20poly1305(hashed(shared), nonce).encrypt(plain);
  secret.fill(0);
  return concat(ephemeral, box);
}

/** Return HSalsa20 of a shared secret and 16 zeros. */
function hashed(shared: Uint8Array): Uint8Array {
  const [key, view] = [new Uint32Array(8), new DataView(shared.buffer, shared.byteOffset, 32)];
  for (let place = 0; place < 8; place += 1) key[place] = view.getUint32(4 * place, true);
  const sigma = Uint32Array.of(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);
  const out = new Uint32Array(8);
  hsalsa(sigma, key, new Uint32Array(4), out);
  const bytes = new DataView(new ArrayBuffer(32));
  out.forEach((word, place) => {
    bytes.setUint32(4 * place, word, true);
  });
  return new Uint8Array(bytes.buffer);
}

async function sha512(data: Uint8Array): Promise<Uint8Array> {
  const subtle = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  if (subtle !== undefined) return new Uint8Array(await subtle.digest("SHA-512", Uint8Array.from(data)));
  return (await import("@noble/hashes/sha2.js")).sha512(data);
}
