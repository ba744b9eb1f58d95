/** Encoders: in which cell an item falls, under a function that is drawn for each report. */

import { chacha20 } from "@noble/ciphers/chacha.js";
import { integerOf, unhex, utf8 } from "../bytes.js";
import { FormatError } from "../errors.js";
import { primeAtLeast } from "../maths/primes.js";
import type { NumberField } from "../wire/packing.js";

/** 2**61 - 1, the field of the fingerprints that stand for strings. */
export const PRIME_61 = (1n << 61n) - 1n;

/** A family of hash functions from items to cells. */
export interface Encoder {
  readonly cells: bigint;
  /** The numbers that name the function in a report, each drawn uniformly. */
  readonly fields: readonly NumberField[];
  /** Return the cell of an item under the function with these numbers. */
  cell(item: bigint, named: readonly bigint[]): bigint;
}

/** Return the encoder of items that are cells themselves. */
export function identity(cells: bigint): Encoder {
  return { cells, fields: [], cell: (item) => item };
}

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
 * A report needs one function, so the others are never expanded: three blocks of ChaCha20, however large the pool is.
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

/** Return the signs of a Sylvester matrix: item x is row x div B of it, in block x mod B. */
export function hadamard(items: bigint, blocks: bigint): Encoder {
  let order = 1n;
  while (order * blocks < items) order <<= 1n;
  const cell = (item: bigint, [column = 0n]: readonly bigint[]): bigint =>
    2n * (item % blocks) + parity(column & (item / blocks));
  return { cells: 2n * blocks, fields: [{ bound: order, least: 0n }], cell };
}

/** Return two encoders in a row: the first one's cell is the item of the second. */
export function nested(outer: Encoder, inner: Encoder): Encoder {
  const named = outer.fields.length;
  return {
    cells: inner.cells,
    fields: [...outer.fields, ...inner.fields],
    cell: (item, numbers) => inner.cell(outer.cell(item, numbers), numbers.slice(named)),
  };
}

/** Return P, the field of affine functions: 2**61 - 1 in the open domain, else the least prime from d on. */
export function primeOf(domain: number | undefined): bigint {
  return domain === undefined ? PRIME_61 : BigInt(primeAtLeast(domain));
}

/** Return affine functions of a prime field, folded into fewer buckets or, with P buckets, as they are. */
export function affine(prime: bigint, buckets: bigint): Encoder {
  if (!(buckets >= 2n && buckets <= prime)) {
    throw new FormatError(`B is ${String(buckets)}, must be in 2..${String(prime)} buckets`);
  }
  const slopes = (prime - 1n) / 2n;
  const slope = { bound: (slopes > 1n ? slopes : 1n) + 1n, least: 1n };
  const shift = { bound: prime, least: 0n };
  return {
    cells: buckets,
    fields: buckets < prime ? [slope, shift] : [slope],
    cell: (item, [a = 1n, b = 0n]) => ((a * item + b) % prime) % buckets,
  };
}

function parity(bits: bigint): bigint {
  let odd = 0n;
  for (let left = bits; left > 0n; left >>= 1n) odd ^= left & 1n;
  return odd;
}
