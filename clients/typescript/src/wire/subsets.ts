/** Subsets in a report: as their rank among all subsets, as a list or as a bitmap. */

import { bitLength, type Tail } from "./packing.js";

const TABLE_LIMIT = 2 ** 26;

/** A strictly ascending list of `count` integers below `bound`, and its form on the wire. */
export interface SubsetField extends Tail {
  readonly form: "rank" | "list" | "bitmap";
  readonly bound: number;
  readonly count: number;
}

/** Return the field of subsets: a rank if its table is small, else the shorter of a list and a bitmap. */
export function subsetField(bound: number, count: number): SubsetField {
  const steps = 4 * count * (bound - count + 1);
  if (steps <= TABLE_LIMIT) {
    const codes = binomial(bound, count);
    const limbs = Math.max(1, Math.ceil(bitLength(codes - 1n) / 32));
    if (steps * limbs <= TABLE_LIMIT) return { form: "rank", bound, count, codes };
  }
  const listBits = count * valueBits(bound);
  const [form, bits] = listBits < bound ? (["list", listBits] as const) : (["bitmap", bound] as const);
  return { form, bound, count, codes: 1n << BigInt(bits) };
}

/** Return the integer of a subset, given as ascending cells. */
export function subsetCode({ form, bound }: SubsetField, cells: readonly number[]): bigint {
  if (form === "rank") return rank(cells);
  const step = form === "list" ? valueBits(bound) : 0;
  const bits = new Uint8Array(Math.ceil((form === "list" ? cells.length * step : bound) / 8));
  const set = (bit: number): void => {
    bits[bit >>> 3] = (bits[bit >>> 3] ?? 0) | (1 << (bit & 7));
  };
  cells.forEach((cell, place) => {
    if (form === "bitmap") set(cell);
    for (let bit = 0; bit < step; bit += 1) if (Math.floor(cell / 2 ** bit) % 2 === 1) set(place * step + bit);
  });
  return BigInt(`0x0${Array.from(bits.reverse(), (byte) => byte.toString(16).padStart(2, "0")).join("")}`);
}

/** Return sum of C(c_i, i+1) over the ascending cells. */
function rank(cells: readonly number[]): bigint {
  let sum = 0n;
  // The value is C(cell, size) of the last cell; from it the next value takes few steps if the next cell is near.
  let [last, cell, size] = [1n, 0, 0];
  for (const next of cells) {
    size += 1;
    if (next < size) {
      [last, cell] = [0n, next];
      continue;
    }
    if (last === 0n || next - cell > Math.min(size, next - size)) last = binomial(next, size);
    else {
      last = (last * BigInt(cell - size + 1)) / BigInt(size);
      while (cell < next) {
        cell += 1;
        last = cell === size ? 1n : (last * BigInt(cell)) / BigInt(cell - size);
      }
    }
    cell = next;
    sum += last;
  }
  return sum;
}

function binomial(of: number, size: number): bigint {
  let result = 1n;
  const steps = Math.min(size, of - size);
  for (let step = 1; step <= steps; step += 1) result = (result * BigInt(of - steps + step)) / BigInt(step);
  return result;
}

function valueBits(bound: number): number {
  return Math.max(1, bitLength(BigInt(bound - 1)));
}
