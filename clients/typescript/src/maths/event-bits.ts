/** Draws many events of one probability together. */

import { at, wordOf, type Words } from "./words.js";

const HALF = 2 ** 32;
const DIGITS = 8n;

/**
 * Draw `lanes` times 64 bits, each set with probability exactly threshold / 2**64; the result has 32 bits an element.
 *
 * All bits are drawn in parallel. For each bit, its own random number is compared with the threshold, from the highest
 * binary digit down. After eight digits one bit in 256 is undecided, and its other digits are drawn separately.
 */
export function eventBits(threshold: bigint, lanes: number, words: Words): Uint32Array {
  const bits = new Uint32Array(2 * lanes);
  const undecided = new Uint32Array(2 * lanes).fill(HALF - 1);
  for (let digit = 63n; digit > 63n - DIGITS; digit -= 1n) {
    const drawn = words(lanes);
    const one = ((threshold >> digit) & 1n) === 1n;
    for (let place = 0; place < bits.length; place += 1) {
      const [open, half] = [at(undecided, place), at(drawn, place)];
      if (one) bits[place] = at(bits, place) | (open & ~half);
      undecided[place] = one ? open & half : open & ~half;
    }
  }
  const rest = threshold & ((1n << (64n - DIGITS)) - 1n);
  for (let bit = 0; bit < 64 * lanes; bit += 1) {
    const place = bit >>> 5;
    const mask = 1 << (bit & 31);
    if ((at(undecided, place) & mask) === 0) continue;
    if (wordOf(words) >> DIGITS < rest) bits[place] = at(bits, place) | mask;
  }
  return bits;
}
