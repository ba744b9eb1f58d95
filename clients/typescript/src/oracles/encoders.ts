/** Encoders map an item to a cell, by a function that is drawn for each report. */

import type { NumberField } from "../wire/packing.js";

/** 2**61 - 1, the size of the field of the fingerprints of strings. */
export const PRIME_61 = (1n << 61n) - 1n;

/** A family of hash functions from items to cells. */
export interface Encoder {
  readonly cells: bigint;
  /** The numbers that name the function in a report, each drawn uniformly. */
  readonly fields: readonly NumberField[];
  /** Return the cell of an item under the function with these numbers. */
  cell(item: bigint, named: readonly bigint[]): bigint;
}

/** Return the encoder for which each item is its own cell. */
export function identity(cells: bigint): Encoder {
  return { cells, fields: [], cell: (item) => item };
}
