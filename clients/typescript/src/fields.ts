/** Checks data of another party: every field is valid, there are no other fields, and inherited fields are ignored. */

import { FormatError } from "./errors.js";
import { own } from "./own.js";

/** The fields of an object in a file. */
export type Fields = Readonly<Record<string, unknown>>;

/** 32 bytes in hexadecimal digits. */
export const HEX_32 = /^[0-9a-f]{64}$/;
/** The id of a public key. */
export const KEY_ID = /^[0-9a-f]{16}$/;
/** The id of a campaign. */
export const IDENTIFIER = /^[a-z0-9][a-z0-9._-]{0,63}$/;
/** A time with its zone, as Hushcount writes it; `timeOf` checks that the day exists in its month. */
const TIME = /^(?!0000)\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/**
 * Return an object's fields: all of `needed`, some of `optional`, and no other fields; `name` is the name of the file.
 */
export function fieldsOf(
  data: unknown,
  name: string,
  needed: readonly string[],
  optional: readonly string[] = [],
): Fields {
  if (typeof data !== "object" || data === null || Array.isArray(data)) {
    throw new FormatError(`${name} must be an object`);
  }
  const missing = needed.find((field) => !Object.hasOwn(data, field));
  if (missing !== undefined) throw new FormatError(`${name}: ${missing} is missing: it must be given`);
  const known = new Set([...needed, ...optional]);
  if (Object.keys(data).some((field) => !known.has(field))) {
    throw new FormatError(`${name} has a field that is not one of ${[...known].join(", ")}: leave it out`);
  }
  return own(data) as Fields;
}

/** Return a text that has this form. */
export function textOf(fields: Fields, field: string, form: RegExp, name: string): string {
  const value = fields[field];
  if (typeof value !== "string" || !form.test(value)) {
    throw new FormatError(`${name}: ${field} must be text of the form ${form.source}`);
  }
  return value;
}

/** Return a finite number in least..most; with `whole` it must be an integer. */
export function numberOf(
  fields: Fields,
  field: string,
  [least, most]: readonly [number, number],
  name: string,
  whole = false,
): number {
  const value = fields[field];
  if (typeof value !== "number" || !(value >= least && value <= most) || (whole && !Number.isInteger(value))) {
    const kind = whole ? "a whole number" : "a number";
    throw new FormatError(`${name}: ${field} must be ${kind} in ${String(least)}..${String(most)}`);
  }
  return value;
}

/** Return true or false. */
export function booleanOf(fields: Fields, field: string, name: string): boolean {
  const value = fields[field];
  if (typeof value === "boolean") return value;
  throw new FormatError(`${name}: ${field} must be true or false`);
}

/** Return a list of at most `most` elements. */
export function listOf(fields: Fields, field: string, most: number, name: string): readonly unknown[] {
  const value = fields[field];
  if (!Array.isArray(value) || value.length > most) {
    throw new FormatError(`${name}: ${field} must be a list of at most ${String(most)}`);
  }
  return value;
}

/** Return a time in milliseconds since 1970. */
export function timeOf(fields: Fields, field: string, name: string): number {
  const text = textOf(fields, field, TIME, name);
  const time = Date.parse(text);
  // The day is compared, because Date.parse reads 30 February as a day in March.
  const midnight = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(time) || midnight.getUTCDate() !== Number(text.slice(8, 10))) throw new FormatError(`${name}: ${field} must be a time, as in 2026-12-01T00:00:00Z`);
  return time;
}
