/** Reads JSON of another party: first the length of the text is checked, then its depth, then its content. */

import { FormatError } from "./errors.js";

const DEEPEST = 32;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Return the data of JSON text in bytes; `most` is the largest number of bytes, and `name` is the name of the file.
 *
 * @throws FormatError the text is not JSON (RFC 8259) in UTF-8, nests deeper than 32 levels, or has a key twice, an
 * integer beyond 2**53 - 1, a number that is not finite as a double, or a lone surrogate.
 */
export function parseJson(bytes: Uint8Array, most: number, name: string): unknown {
  if (bytes.length > most) {
    throw new FormatError(`${name} has ${String(bytes.length)} bytes, must have at most ${String(most)}`);
  }
  const text = textOf(bytes, name);
  const bare = withoutTexts(text);
  requireShallow(bare, name);
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // The engine's own message is left out, because it may repeat the file's contents.
    throw new FormatError(`${name} is not JSON`);
  }
  requireExact(bare, name);
  // In the text each key is followed by a colon. Of two equal keys the parser keeps one, so the text has more colons
  // than the data has keys.
  if (bare.split(":").length - 1 !== keysIn(data, name)) throw new FormatError(`${name} has a key twice in an object`);
  return data;
}

function textOf(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FormatError(`${name} is not UTF-8`);
  }
}

/** Return JSON without its strings, in linear time for any input. */
function withoutTexts(text: string): string {
  const pieces = text.replace(/\\./gs, "").split('"');
  return pieces.filter((_, place) => place % 2 === 0).join(" ");
}

function requireShallow(bare: string, name: string): void {
  let depth = 0;
  for (const [bracket] of bare.matchAll(/[[\]{}]/g)) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    if (depth > DEEPEST) throw new FormatError(`${name} is nested deeper than ${String(DEEPEST)} levels`);
  }
}

function requireExact(bare: string, name: string): void {
  for (const [digits] of bare.matchAll(NUMBER)) {
    if (!Number.isFinite(Number(digits))) throw new FormatError(`${name} has a number that is not finite as a double`);
    if (/^-?\d+$/.test(digits) && !Number.isSafeInteger(Number(digits))) {
      throw new FormatError(`${name} has an integer above 2**53 - 1: write it as text`);
    }
  }
}

function keysIn(data: unknown, name: string): number {
  if (typeof data === "string" && LONE_SURROGATE.test(data)) throw new FormatError(`${name} has a lone surrogate`);
  if (typeof data !== "object" || data === null) return 0;
  let keys = 0;
  for (const [key, value] of Object.entries(data)) {
    if (LONE_SURROGATE.test(key)) throw new FormatError(`${name} has a lone surrogate`);
    keys += (Array.isArray(data) ? 0 : 1) + keysIn(value, name);
  }
  return keys;
}
