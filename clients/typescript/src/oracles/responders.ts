/** Responders: how a cell becomes a randomised answer. Each takes all its words whatever the cell is. */

import { FormatError } from "../errors.js";
import { WORD_VALUES } from "../maths/thresholds.js";
import { event, eventBits, otherCells, uniform, type Words } from "../maths/words.js";
import { integerOf } from "../bytes.js";
import { subsetCode, subsetField, type NumberField, type Tail } from "../wire/packing.js";

/** Longest report before sealing, and most cells in one. */
const MOST_BYTES = 2 ** 16;

/** The numbers of an answer, and the code of its tail. */
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

/** Return the responder that keeps the cell with probability keep / 2**64, else gives another one. */
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

/** Return the responder of cyclic windows of consecutive cells, sent as their start. */
export function interval(width: bigint, size: bigint, keep: bigint): Responder {
  requireSized(width, size, keep);
  return {
    width,
    fields: [{ bound: width, least: 0n }],
    respond: (own, words) => {
      const kept = event(keep, words);
      const before = uniform(size, words);
      const after = uniform(width - size, words);
      return { numbers: [(kept ? own + width - before : own + 1n + after) % width] };
    },
  };
}

/** Return the responder of subsets: one that holds the cell with probability keep / 2**64, else one that does not. */
export function subset(width: bigint, size: bigint, keep: bigint): Responder {
  requireSized(width, size, keep);
  const [m, s] = [Number(width), Number(size)];
  const octets = Math.min(s * Math.ceil(Math.log2(m)), m) / 8;
  if (octets > MOST_BYTES || s > MOST_BYTES) {
    throw new FormatError(`${String(s)} of ${String(m)} cells in a report are too many`);
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
      // A uniform s-subset of the others, less a uniform one of its members, is a uniform (s-1)-subset.
      if (kept) cells[dropped] = Number(own);
      return { numbers: [], code: subsetCode(field, cells.sort((one, other) => one - other)) };
    },
  };
}

/** Return the responder of one bit a cell: the own one set with probability keep / 2**64, each other with flip. */
export function unary(width: bigint, keep: bigint, flip: bigint): Responder {
  if (!(width >= 2n && width <= BigInt(8 * MOST_BYTES))) {
    throw new FormatError(`width is ${String(width)}, must be in 2..${String(8 * MOST_BYTES)} cells, a bit for each`);
  }
  if (!(flip > 0n && flip < keep && keep < WORD_VALUES)) throw new FormatError("p must be above q and below 1");
  const codes = 1n << width;
  return {
    width,
    fields: [],
    tail: { codes },
    respond: (own, words) => {
      const bits = eventBits(flip, Math.ceil(Number(width) / 64), words);
      const kept = event(keep, words);
      const [place, mask] = [Number(own) >>> 5, 1 << (Number(own) & 31)];
      const half = bits[place] ?? 0;
      bits[place] = kept ? half | mask : half & ~mask;
      return { numbers: [], code: codeOf(bits) & (codes - 1n) };
    },
  };
}

/** Throw unless a report of `size` of `width` cells tells something, and not everything. */
export function requireSized(width: bigint, size: bigint, keep: bigint): void {
  if (width < 2n) throw new FormatError(`width is ${String(width)}, must be at least 2 cells`);
  if (!(size >= 1n && size < width)) {
    throw new FormatError(`s is ${String(size)}, must be in 1..${String(width - 1n)} for ${String(width)} cells`);
  }
  if (!(keep * width > WORD_VALUES * size && keep < WORD_VALUES)) {
    throw new FormatError("p must be above s/m, where a report says nothing, and below 1");
  }
}

function codeOf(bits: Uint32Array): bigint {
  const bytes = new Uint8Array(4 * bits.length);
  const view = new DataView(bytes.buffer);
  bits.forEach((half, place) => {
    view.setUint32(4 * place, half, true);
  });
  return integerOf(bytes);
}
