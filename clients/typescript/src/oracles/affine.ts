import { FormatError } from "../errors.js";
import { primeAtLeast } from "../maths/primes.js";
import { PRIME_61, type Encoder } from "./encoders.js";

/** Return P, the field of affine functions: 2**61 - 1 in the open domain, else the least prime from d on. */
export function primeOf(domain: number | undefined): bigint {
  return domain === undefined ? PRIME_61 : BigInt(primeAtLeast(domain));
}

/**
 * Return affine functions of a prime field, whose values are folded into fewer buckets; with P buckets nothing is
 * folded.
 */
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
