import { FormatError } from "./errors.js";

/** Return the data of JSON text in bytes, or throw FormatError, which names the file; `most` bounds the bytes. */
export function parseJson(bytes: Uint8Array, most: number, name: string): unknown {
  if (bytes.length > most) {
    throw new FormatError(`${name} has ${String(bytes.length)} bytes, must have at most ${String(most)}`);
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new FormatError(`${name} is not JSON in UTF-8`);
  }
}
