/** The wire form of a report: one integer below the number of different reports, in the fewest whole bytes. */

import { bytesOf } from "../bytes.js";

/** A number in least..bound-1 of a report. */
export interface NumberField {
  readonly bound: bigint;
  readonly least: bigint;
}

/** What takes the most significant place of a report: `codes` is how many there are. */
export interface Tail {
  readonly codes: bigint;
}

/** Return how many bytes reports of these fields have. */
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

/** Return how many bits a non-negative integer has; 0 has none. */
export function bitLength(integer: bigint): number {
  const digits = integer.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits.charAt(0), 16)) + 28;
}
