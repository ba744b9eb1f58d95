/** The one door to randomness: unsigned 64-bit words, and the exact draws made from them. */

import { WORD_VALUES } from "./thresholds.js";

/** A source of independent, uniform 64-bit words: returns `count` fresh ones, each as its low and its high 32 bits. */
export type Words = (count: number) => Uint32Array;

const HALF = 2 ** 32;
const MOST_AT_ONCE = 16_384;
const DIGITS = 8n;

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

/**
 * Draw `lanes` times 64 bits, each set with probability exactly threshold / 2**64; the result has 32 bits an element.
 *
 * All bits compare a random number of their own with the threshold at once, from its highest digit down. After eight
 * digits one bit in 256 is undecided, and draws its other digits alone.
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

/**
 * Draw a uniform subset of the cells other than the own one, in the order of drawing.
 *
 * Step j of Floyd's method draws from the first width-size+j other cells; if the subset already has the cell, it takes
 * the last of these. A draw is the high half of a 32-bit word times the bound; after a low half that would favour some
 * cells (Lemire 2019) the whole subset is drawn anew. Exact.
 */
export function otherCells(width: number, size: number, own: number, words: Words): number[] {
  for (;;) {
    const drawn = words(Math.ceil(size / 2));
    const chosen = new Set<number>();
    let fair = true;
    for (let step = 0; step < size; step += 1) {
      const bound = width - size + step;
      const [high, low] = product(at(drawn, step), bound);
      if (low < HALF % bound) fair = false;
      chosen.add(chosen.has(high) ? bound - 1 : high);
    }
    if (fair) return Array.from(chosen, (cell) => (cell >= own ? cell + 1 : cell));
  }
}

/** Return the high and the low 32 bits of the product of two integers below 2**32. */
function product(one: number, other: number): readonly [high: number, low: number] {
  const lower = (one & 0xffff) * other;
  const upper = (one >>> 16) * other + Math.floor(lower / 0x10000);
  return [Math.floor(upper / 0x10000), (upper % 0x10000) * 0x10000 + (lower % 0x10000)];
}

function wordOf(words: Words): bigint {
  const halves = words(1);
  return (BigInt(at(halves, 1)) << 32n) | BigInt(at(halves, 0));
}

function at(halves: Uint32Array, place: number): number {
  return halves[place] ?? 0;
}
