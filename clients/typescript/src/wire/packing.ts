/** The wire form of a report: one integer below the number of different reports, in the fewest whole bytes. */

import { bytesOf } from "../bytes.js";

/** A number of a report, in least..bound-1. */
export interface NumberField {
  readonly bound: bigint;
  readonly least: bigint;
}

/** The most significant part of a report; `codes` is the number of values that this part can have. */
export interface Tail {
  readonly codes: bigint;
}

/** Return the length in bytes of reports with these fields. */
export function reportBytes(fields: readonly NumberField[], tail?: Tail): number {
  const answers = fields.reduce((product, { bound, least }) => product * (bound - least), tail?.codes ?? 1n);
  return Math.ceil(bitLength(answers - 1n) / 8);
}

/** Return a report: its numbers are digits in mixed radix, the first the least significant; `code` is the tail's. */
export function pack(
  fields: readonly NumberField[],
  numbers: readonly bigint[],
  length: number,
  code = 0n,
): Uint8Array {
  const whole = fields.reduceRight(
    (sum, { bound, least }, place) => sum * (bound - least) + (numbers[place] ?? least) - least,
    code,
  );
  return bytesOf(whole, length);
}

/** Return the number of bits of a non-negative integer; 0 for 0. */
export function bitLength(integer: bigint): number {
  const digits = integer.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits.charAt(0), 16)) + 28;
}
