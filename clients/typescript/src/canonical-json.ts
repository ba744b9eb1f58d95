/** Canonical JSON (RFC 8785): each value has one text, the same in every programming language. */

import { utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";

/**
 * Return the canonical bytes: keys sorted by UTF-16 units, numbers as ECMAScript writes them, no spaces.
 *
 * @throws FormatError a number is not finite, a text has a lone surrogate, or a value cannot be written in JSON.
 */
export function canonicalJson(data: unknown): Uint8Array {
  return utf8(textOf(data));
}

function textOf(data: unknown): string {
  if (Array.isArray(data)) return `[${data.map(textOf).join(",")}]`;
  if (typeof data === "object" && data !== null) {
    const pairs = Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${pairs.map(([key, value]) => `${textOf(key)}:${textOf(value)}`).join(",")}}`;
  }
  if (typeof data === "string" && /\p{Surrogate}/u.test(data)) throw new FormatError("a text has a lone surrogate");
  if (typeof data === "number" && !Number.isFinite(data)) throw new FormatError("a number is not finite");
  const text = JSON.stringify(data) as string | undefined;
  if (text === undefined) throw new FormatError(`a value is a ${typeof data}, must be of a type that JSON has`);
  return text;
}
