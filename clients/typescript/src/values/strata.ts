/** Strata: a client reports an item together with its coordinate on each axis, as one cell of a product. */

import type { Form } from "../campaign/campaign.js";

const MOST_AXES = 8;
const MOST_STRATA = 4096;
const MOST_CELLS = 2 ** 24;
const STRATUM_BYTES = 2;
const ROUNDS = 8;
const KEY = /^[0-9a-f]{64}$/;
const OTHER = "other";

/** A client's coordinates, by axis. */
export type Coordinates = Readonly<Record<string, string>>;

/** Functions of the page that this module uses, so that no bundle has them twice. */
export interface Tools {
  readonly FormatError: new (message: string) => Error;
  readonly own: <Data extends object>(data: Data | null | undefined) => Data;
  readonly familyOf: (name: string) => string;
  readonly mayBeListed: (axis: string, coordinate: string) => boolean;
}

/** The cells of a campaign's items and private strata, and its public strata. */
export interface Strata {
  /** The number of cells, which the mechanism counts; undefined without private axes: it counts items. */
  readonly cells: number | undefined;
  /** Return the cell of an item of a client; a missing or unlisted coordinate is "other". */
  readonly cellOf: (item: number, by: Coordinates) => number;
  /** Return the number of a client's public stratum, which is sent before the box; no bytes without public axes. */
  readonly stratumOf: (by: Coordinates) => Uint8Array;
  /** The number of public strata, 1 without public axes. */
  readonly publicStrata: number;
  /** The length of what `stratumOf` returns. */
  readonly stratumBytes: number;
}

interface Axis {
  readonly name: string;
  readonly public: boolean;
  readonly values: readonly string[];
}

/** Return the strata of a campaign file. Throws FormatError: its section is wrong. */
export function strataOf(tools: Tools, { axes, dictionary, mechanismTerms, noise }: Form): Strata {
  const { listed, key, ...more } = tools.own(axes as unknown as Readonly<Record<string, unknown>>);
  const isForm = areAxes(tools, listed) && typeof key === "string" && KEY.test(key) && Object.keys(more).length === 0;
  if (!isForm) {
    throw new tools.FormatError(`axes must have a key and 1 to ${String(MOST_AXES)} named lists of different coordinates`);
  }
  const strata = productOf(listed);
  if (strata > MOST_STRATA) {
    throw new tools.FormatError(`axes: ${String(strata)} strata, must be at most ${String(MOST_STRATA)}`);
  }
  const [hidden, told] = [listed.filter((axis) => !axis.public), listed.filter((axis) => axis.public)];
  const items = (dictionary?.items ?? MOST_CELLS) + 1;
  const family = mechanismTerms === undefined ? (noise ? "cells" : "pools") : tools.familyOf(mechanismTerms.name);
  if (family === "pools" || (family === "lines" && hidden.length > 0) || items * strata > MOST_CELLS) {
    throw new tools.FormatError(
      `axes need a dictionary with at most ${String(MOST_CELLS)} cells, and a mechanism without a sketch; private ones no mean`,
    );
  }
  const words = Array.from({ length: ROUNDS }, (_, turn) => wordOf(key, turn));
  const cells = items * productOf(hidden);
  const stratumBytes = told.length > 0 ? STRATUM_BYTES : 0;
  return {
    cells: hidden.length > 0 ? cells : undefined,
    cellOf: (item, by) => numberOf(item * productOf(hidden) + placeOf(hidden, by), cells - 1, words),
    stratumOf: (by) => new Uint8Array([placeOf(told, by) & 255, placeOf(told, by) >> 8]).subarray(0, stratumBytes),
    publicStrata: productOf(told),
    stratumBytes,
  };
}

function productOf(axes: readonly Axis[]): number {
  return axes.reduce((product, { values }) => product * (values.length + 1), 1);
}

function placeOf(axes: readonly Axis[], by: Coordinates): number {
  return axes.reduce((found, { name, values }) => {
    const place = Object.hasOwn(by, name) ? values.indexOf(by[name] ?? "") : -1;
    return found * (values.length + 1) + (place < 0 ? values.length : place);
  }, 0);
}

/**
 * Return the number of a cell, a random one: a keyed permutation of 0 to last - 1, by a Feistel network whose numbers
 * out of range walk on. The last cell, of no item in the last stratum, keeps its number.
 */
function numberOf(place: number, last: number, words: readonly number[]): number {
  if (place === last) return last;
  const half = Math.max(1, Math.ceil((32 - Math.clz32(last - 1)) / 2));
  let made = place;
  do made = encrypted(made, half, words);
  while (made >= last);
  return made;
}

function encrypted(number: number, half: number, words: readonly number[]): number {
  const mask = 2 ** half - 1;
  let [left, right] = [number >>> half, number & mask];
  for (const word of words) [left, right] = [right, left ^ (mixed((right + word) >>> 0) & mask)];
  return left * 2 ** half + right;
}

/** Return the finaliser of MurmurHash3 of a 32-bit word. */
function mixed(word: number): number {
  let found = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  found = Math.imul(found ^ (found >>> 13), 0xc2b2ae35);
  return (found ^ (found >>> 16)) >>> 0;
}

/** Return a word of a key in hexadecimal digits, the lowest byte first. */
function wordOf(key: string, place: number): number {
  const bytes = [0, 1, 2, 3].map((byte) => Number.parseInt(key.slice(8 * place + 2 * byte).slice(0, 2), 16));
  return bytes.reduceRight((word, byte) => word * 256 + byte, 0);
}

function areAxes(tools: Tools, listed: unknown): listed is readonly Axis[] {
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > MOST_AXES) return false;
  return listed.every((axis) => isAxis(tools, axis)) && new Set(listed.map(({ name }) => name)).size === listed.length;
}

function isAxis({ own, mayBeListed }: Tools, axis: unknown): axis is Axis {
  const { name, public: isPublic, values, ...more } = own(axis as Readonly<Record<string, unknown>> | null);
  const areTyped = typeof name === "string" && typeof isPublic === "boolean";
  const isForm = areTyped && Array.isArray(values) && Object.keys(more).length === 0;
  if (!isForm || values.length === 0 || values.length >= MOST_STRATA || new Set(values).size < values.length) return false;
  return values.every((value) => typeof value === "string" && value !== OTHER && mayBeListed(name, value));
}
