import { FormatError } from "../errors.js";
import { otherCells } from "../maths/subsets.js";
import { event, uniform } from "../maths/words.js";
import { subsetCode, subsetField } from "../wire/subsets.js";
import { MOST_BYTES, requireSized, type Responder } from "./responders.js";

/** The most cells of a report times cells of the mechanism: with more, a draw would begin anew more than e**4 times. */
const LARGEST_DRAW = 2 ** 34;

/**
 * Return the responder of subsets: with probability keep / 2**64 a subset with the cell, else a subset without the
 * cell.
 */
export function subset(width: bigint, size: bigint, keep: bigint): Responder {
  requireSized(width, size, keep);
  const [m, s] = [Number(width), Number(size)];
  const octets = Math.min(s * Math.ceil(Math.log2(m)), m) / 8;
  if (octets > MOST_BYTES || s > MOST_BYTES || s * m > LARGEST_DRAW) {
    throw new FormatError(`s is ${String(s)}, too large for ${String(m)} cells: it must be smaller`);
  }
  const field = subsetField(m, s);
  return {
    width,
    fields: [],
    tail: field,
    respond: (own, words) => {
      const kept = event(keep, words);
      const dropped = Number(uniform(size, words));
      const cells = otherCells(m, s, Number(own), words);
      // A uniform s-subset of the other cells without one uniform member is a uniform (s-1)-subset.
      if (kept) cells[dropped] = Number(own);
      return { numbers: [], code: subsetCode(field, cells.sort((one, other) => one - other)) };
    },
  };
}
