import type { Encoder } from "./encoders.js";

/** Return the encoder by signs of a Sylvester matrix: item x uses row x div B of the matrix, in block x mod B. */
export function hadamard(items: bigint, blocks: bigint): Encoder {
  let order = 1n;
  while (order * blocks < items) order <<= 1n;
  const cell = (item: bigint, [column = 0n]: readonly bigint[]): bigint =>
    2n * (item % blocks) + parity(column & (item / blocks));
  return { cells: 2n * blocks, fields: [{ bound: order, least: 0n }], cell };
}

function parity(bits: bigint): bigint {
  let odd = 0n;
  for (let left = bits; left > 0n; left >>= 1n) odd ^= left & 1n;
  return odd;
}
