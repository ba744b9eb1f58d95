/** Uniform subsets. */

import { at, type Words } from "./words.js";

const HALF = 2 ** 32;

/**
 * Draw a uniform subset of the cells without the client's own cell, in the order of drawing.
 *
 * Step j of Floyd's method draws one of the first width-size+j other cells; if the subset already has the drawn cell,
 * it gets the last of these cells instead. A draw is the high half of a 32-bit word times the bound. If the low half
 * shows that the draw would favour some cells (Lemire 2019), the whole subset is drawn again. So the distribution is
 * exactly uniform.
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
