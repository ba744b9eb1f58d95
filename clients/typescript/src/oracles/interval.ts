import { event, uniform } from "../maths/words.js";
import { requireSized, type Responder } from "./responders.js";

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
