/** RSA keys for tests that sign as an issuer does; this arithmetic is not constant in time. */

import { generateKeyPairSync, type JsonWebKey } from "node:crypto";
import { numberOf } from "../src/passes/blind.js";

export interface Key {
  readonly n: bigint;
  readonly d: bigint;
}

/** Return new keys of 2048 bits. */
export function newKeys(length: number): readonly Key[] {
  return Array.from({ length }, () => {
    const { n = "", d = "" }: JsonWebKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
    const [modulus = 0n, exponent = 0n] = [n, d].map((text) => numberOf(Buffer.from(text, "base64url")));
    return { n: modulus, d: exponent };
  });
}

/** Return the 256 bytes of a modulus or of a signature. */
export function bytes(number: bigint): Buffer<ArrayBuffer> {
  return Buffer.from(number.toString(16).padStart(512, "0"), "hex");
}

export function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base % modulus];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}
