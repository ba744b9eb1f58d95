/** The one door to randomness: unsigned 64-bit words, and the exact draws made from them. */

import { WORD_VALUES } from "./thresholds.js";

/** A source of independent, uniform 64-bit words: returns `count` fresh ones, each as its low and its high 32 bits. */
export type Words = (count: number) => Uint32Array;

const MOST_AT_ONCE = 16_384;

/** Words of the browser's cryptographic generator. */
export function systemWords(count: number): Uint32Array {
  const halves = new Uint32Array(2 * count);
  for (let start = 0; start < halves.length; start += MOST_AT_ONCE) {
    crypto.getRandomValues(halves.subarray(start, start + MOST_AT_ONCE));
  }
  return halves;
}

/** Draw random bytes: the words one after the other, little-endian; `count` is a multiple of 8. */
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

/** Draw an integer that is exactly uniform on 0..bound-1. A word in the incomplete last stretch is drawn again. */
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

/** Return 32 bits of some. */
export function at(halves: Uint32Array, place: number): number {
  return halves[place] ?? 0;
}
