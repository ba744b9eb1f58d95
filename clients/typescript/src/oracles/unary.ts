import { integerOf } from "../bytes.js";
import { FormatError } from "../errors.js";
import { eventBits } from "../maths/event-bits.js";
import { symmetricThreshold, WORD_VALUES } from "../maths/thresholds.js";
import { event } from "../maths/words.js";
import { MOST_BYTES, type Responder } from "./responders.js";

/** Return the responder of one bit a cell: the own cell's bit is 1 with probability keep / 2**64, others with flip. */
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

/** Return the responder that keeps all bits with the same probability. */
export function symmetric(epsilon: number, cells: bigint): Responder {
  const keep = symmetricThreshold(epsilon);
  return unary(cells, keep, WORD_VALUES - keep);
}

function codeOf(bits: Uint32Array): bigint {
  const bytes = new Uint8Array(4 * bits.length);
  const view = new DataView(bytes.buffer);
  bits.forEach((half, place) => {
    view.setUint32(4 * place, half, true);
  });
  return integerOf(bytes);
}
