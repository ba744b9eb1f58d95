import { blake2b as hashed } from "./blake2b.js";
import { own } from "./own.js";

const TEXT = new TextEncoder();

export function utf8(text: string): Uint8Array {
  return TEXT.encode(text);
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function unhex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

/** `length` is the hash's length in bytes; `person` names the purpose of the hash. */
export interface HashOptions {
  readonly length: number;
  readonly person?: string;
  readonly key?: Uint8Array;
  readonly salt?: Uint8Array;
}

export function blake2b(data: Uint8Array, options: HashOptions): Uint8Array {
  const { length, person = "", key, salt } = own(options);
  return hashed(data, { length, person: utf8(person), key, salt });
}

/** Return the non-negative integer in little-endian bytes. */
export function integerOf(bytes: Uint8Array): bigint {
  return BigInt(`0x0${hex(bytes.slice().reverse())}`);
}

/** Return the lowest `length` bytes of a non-negative integer, little-endian. */
export function bytesOf(integer: bigint, length: number): Uint8Array {
  return unhex(integer.toString(16).padStart(2 * length, "0").slice(-2 * length)).reverse();
}
