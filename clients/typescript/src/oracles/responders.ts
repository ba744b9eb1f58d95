/** Responders turn a cell into a randomised answer. A responder draws the same number of words whatever the cell is. */

import { FormatError } from "../errors.js";
import { WORD_VALUES } from "../maths/thresholds.js";
import { event, uniform, type Words } from "../maths/words.js";
import type { NumberField, Tail } from "../wire/packing.js";

/** The greatest length of a report before sealing, in bytes, and the greatest number of cells in a report. */
export const MOST_BYTES = 2 ** 16;

/** The fields of an answer that are numbers, and the code of its tail. */
export interface Answer {
  readonly numbers: readonly bigint[];
  readonly code?: bigint;
}

/** A family of answers to a cell. */
export interface Responder {
  /** m, the number of cells. */
  readonly width: bigint;
  readonly fields: readonly NumberField[];
  readonly tail?: Tail;
  /** Draw the answer to the client's own cell. */
  respond(own: bigint, words: Words): Answer;
}

/** Return the responder that keeps the cell with probability keep / 2**64, else draws another cell. */
export function randomisedResponse(width: bigint, keep: bigint): Responder {
  requireSized(width, 1n, keep);
  return {
    width,
    fields: [{ bound: width, least: 0n }],
    respond: (own, words) => {
      const kept = event(keep, words);
      const step = uniform(width - 1n, words);
      return { numbers: [kept ? own : (own + step + 1n) % width] };
    },
  };
}

/** Throw unless a report of `size` of `width` cells reveals something about the cell, but not the cell itself. */
export function requireSized(width: bigint, size: bigint, keep: bigint): void {
  if (width < 2n) throw new FormatError(`width is ${String(width)}, must be at least 2 cells`);
  if (!(size >= 1n && size < width)) {
    throw new FormatError(`s is ${String(size)}, must be in 1..${String(width - 1n)} for ${String(width)} cells`);
  }
  if (!(keep * width > WORD_VALUES * size && keep < WORD_VALUES)) {
    throw new FormatError("p must be above s/m, at which reports say nothing, and below 1");
  }
}
