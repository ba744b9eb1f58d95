/** The only source of randomness: bytes, unsigned 64-bit words, and exact draws from them. */

import { HushcountError } from "../errors.js";
import { WORD_VALUES } from "./thresholds.js";

/** A source of independent, uniform 64-bit words: returns `count` fresh words, each as its low and its high 32 bits. */
export type Words = (count: number) => Uint32Array;

const MOST_AT_ONCE = 65_536;
const [DRAWS, DRAWN] = [16, 32];

/** Draw bytes by the browser's cryptographic generator. */
export function freshBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let start = 0; start < count; start += MOST_AT_ONCE) {
    crypto.getRandomValues(bytes.subarray(start, start + MOST_AT_ONCE));
  }
  return bytes;
}

/** Words of the browser's cryptographic generator. */
export function systemWords(count: number): Uint32Array {
  return new Uint32Array(freshBytes(8 * count).buffer);
}

/**
 * Throw HushcountError if the generator was replaced by one that draws nothing, repeats itself, or changes only some bits.
 *
 * A true generator is refused with a probability below 2**-110. A generator with any other fault is not detected.
 */
export function requireGenerator(): void {
  const draws: Uint8Array[] = [];
  try {
    for (let draw = 0; draw < DRAWS; draw += 1) draws.push(freshBytes(DRAWN));
  } catch {
    // If there is no generator, nothing was drawn, so the check below fails.
  }
  // For each place, the bits that differ between draws.
  const changing = Array.from({ length: DRAWN }, (_, place) =>
    draws.reduce((bits, drawn) => bits | ((drawn[place] ?? 0) ^ (draws[0]?.[place] ?? 0)), 0),
  );
  const areDifferent = new Set(draws.map(String)).size === DRAWS;
  if (areDifferent && !changing.includes(0) && changing.reduce((all, bits) => all | bits) === 255) return;
  throw new HushcountError(
    "crypto.getRandomValues is missing or not random, so reports would reveal values: remove its replacement",
  );
}

/** Draw random bytes: words in order, little-endian; `count` is a multiple of 8. */
export function octetsOf(count: number, words: Words): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(count));
  words(count / 8).forEach((half, place) => {
    bytes.setUint32(4 * place, half, true);
  });
  return new Uint8Array(bytes.buffer);
}

/** Draw an event of probability exactly threshold / 2**64. */
export function event(threshold: bigint, words: Words): boolean {
  return wordOf(words) < threshold;
}

/**
 * Draw an integer that is exactly uniform on 0..bound-1. If a word is in the incomplete last interval, another word is
 * drawn.
 */
export function uniform(bound: bigint, words: Words): bigint {
  const limit = WORD_VALUES - (WORD_VALUES % bound);
  let word = wordOf(words);
  while (word >= limit) word = wordOf(words);
  return word % bound;
}

/** Draw a word. */
export function wordOf(words: Words): bigint {
  const halves = words(1);
  return (BigInt(at(halves, 1)) << 32n) | BigInt(at(halves, 0));
}

/** Return the 32-bit number at a place of a list. */
export function at(halves: Uint32Array, place: number): number {
  return halves[place] ?? 0;
}
