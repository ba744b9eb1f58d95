import { chacha20 } from "@noble/ciphers/chacha.js";
import { integerOf, unhex, utf8 } from "../bytes.js";
import { FormatError } from "../errors.js";
import { PRIME_61, type Encoder } from "./encoders.js";

/** Return k functions fixed for the campaign: polynomials of degree 2 over fingerprints, expanded from the seed. */
export function pool(k: number, m: number, seed: unknown): Encoder {
  if (!(k >= 1 && k <= 2 ** 18)) throw new FormatError(`k is ${String(k)}, must be in 1..${String(2 ** 18)}`);
  if (!(m >= 2 && m <= 2 ** 24)) throw new FormatError(`m is ${String(m)}, must be in 2..${String(2 ** 24)} cells`);
  if (typeof seed !== "string" || !/^[0-9a-f]{64}$/.test(seed)) throw new FormatError("seed must be 64 hexadecimal digits, in lower case");
  const cells = BigInt(m);
  const cell = (item: bigint, [row = 0n]: readonly bigint[]): bigint => {
    const [c0, c1, c2] = coefficients(seed, k, Number(row));
    return ((c0 + (c1 + c2 * item) * item) % PRIME_61) % cells;
  };
  return { cells, fields: [{ bound: BigInt(k), least: 0n }], cell };
}

/**
 * Return the coefficients of one function of a pool, for x**0, x**1 and x**2.
 *
 * A report needs one function only, so just three blocks of ChaCha20 are computed, for any size of the pool.
 */
export function coefficients(seed: string, k: number, row: number): readonly [bigint, bigint, bigint] {
  const key = unhex(seed);
  const nonce = utf8("LibsodiumDRG");
  const word = (place: number): bigint => {
    const block = chacha20(key, nonce, new Uint8Array(64), undefined, Math.floor(place / 8));
    return integerOf(block.subarray(8 * (place % 8), 8 * (place % 8) + 8)) % PRIME_61;
  };
  return [word(row), word(k + row), word(2 * k + row)];
}

/** Return the chain of two encoders: the cell of the first encoder is the item of the second encoder. */
export function nested(outer: Encoder, inner: Encoder): Encoder {
  const named = outer.fields.length;
  return {
    cells: inner.cells,
    fields: [...outer.fields, ...inner.fields],
    cell: (item, numbers) => inner.cell(outer.cell(item, numbers), numbers.slice(named)),
  };
}
