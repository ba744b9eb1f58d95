/**
 * Probabilities as integer thresholds out of 2**64: an event happens if a fresh word is below its threshold.
 *
 * Python computes these thresholds with 60 decimal digits. This module writes every number as an integer out of 2**384,
 * with an error of less than 2**-300. Python and this module round the same real number, which is irrational because
 * epsilon is rational and not 0. So they give the same integer unless that real number is within Python's error, less
 * than 1e-38, of an integer. `rounded` throws within 2 * 2**-100 of an integer, about 1.6e-30, so its result is always
 * Python's result.
 */

import { FormatError } from "../errors.js";

export const WORD_VALUES = 1n << 64n;
const LEAST_EPSILON = 1e-4;
const LARGEST_EPSILON = 40;
const BITS = 384n;
const ONE = 1n << BITS;
const HALVINGS = 10n;
const UNDECIDED = ONE >> 100n;
/** No double in [1e-4, 40] has a bit below this exponent. */
const EPSILON_BITS = 66n;

/** Return floor(2**64 e / (e + m - s)) with e = s exp(epsilon): for a report of s of m cells that spends epsilon. */
export function spendingThreshold(epsilon: number, width: bigint, size: bigint): bigint {
  return spending(scaled(epsilon), width, size);
}

/** Return the threshold for keeping a bit, which is flipped otherwise: two items differ in two bits, each spends half. */
export function symmetricThreshold(epsilon: number): bigint {
  return spending(scaled(epsilon) / 2n, 2n, 1n);
}

/** Return the least threshold for q: the odds of q are at least the odds of p (`keep`) divided by exp(epsilon). */
export function spendingFlip(epsilon: number, keep: bigint): bigint {
  if (!(keep > 0n && keep < WORD_VALUES)) throw new FormatError("p must be above 0 and below 1");
  const own = keep << BITS;
  const others = (WORD_VALUES - keep) * exponential(scaled(epsilon));
  // The number is rounded up by adding 1 to the number rounded down, because it is no integer.
  return rounded((own << (64n + BITS)) / (own + others)) + 1n;
}

/** Return the threshold of a probability, a double, rounded down; the computation is exact. */
export function probabilityThreshold(probability: number, name = "probability"): bigint {
  if (!(probability >= 0 && probability <= 1)) throw new FormatError(`${name} must be in [0, 1]`);
  return BigInt(Math.floor(probability * 2 ** 64));
}

function spending(epsilon: bigint, width: bigint, size: bigint): bigint {
  if (width < 2n) throw new FormatError(`width is ${String(width)}, must be at least 2 cells`);
  if (!(size >= 1n && size < width)) {
    throw new FormatError(`s is ${String(size)}, must be in 1..${String(width - 1n)} for ${String(width)} cells`);
  }
  const weight = exponential(epsilon) * size;
  return rounded((weight << (64n + BITS)) / (weight + ((width - size) << BITS)));
}

/** Return epsilon out of 2**384, exactly. */
function scaled(epsilon: number): bigint {
  if (!(epsilon >= LEAST_EPSILON && epsilon <= LARGEST_EPSILON)) {
    throw new FormatError(`epsilon is ${String(epsilon)}, must be in [${String(LEAST_EPSILON)}, ${String(LARGEST_EPSILON)}]`);
  }
  return BigInt(epsilon * 2 ** Number(EPSILON_BITS)) << (BITS - EPSILON_BITS);
}

/** Return exp(x), both out of 2**384: the series of x / 2**10, squared ten times. */
function exponential(x: bigint): bigint {
  const small = x >> HALVINGS;
  let sum = ONE;
  for (let term = ONE, step = 1n; term > 0n; step += 1n) {
    term = ((term * small) >> BITS) / step;
    sum += term;
  }
  for (let halving = 0n; halving < HALVINGS; halving += 1n) sum = (sum * sum) >> BITS;
  return sum;
}

/**
 * Return the integer part of a number out of 2**384; throw if the number is so near an integer that its integer part is
 * uncertain.
 */
function rounded(value: bigint): bigint {
  const down = (value - UNDECIDED) >> BITS;
  if (down !== (value + UNDECIDED) >> BITS) throw new FormatError("a threshold cannot be decided: change epsilon");
  return down;
}
