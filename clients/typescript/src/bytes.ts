import { blake2b as noble } from "@noble/hashes/blake2.js";

const TEXT = new TextEncoder();
const PERSON_BYTES = 16;

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

export function blake2b(data: Uint8Array, options: { length: number; person?: string; key?: Uint8Array }): Uint8Array {
  const personalization = new Uint8Array(PERSON_BYTES);
  personalization.set(utf8(options.person ?? ""));
  return noble(data, { dkLen: options.length, personalization, ...(options.key ? { key: options.key } : {}) });
}
