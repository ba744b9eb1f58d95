/**
 * SHA-256 and HMAC, by FIPS 180-4 and RFC 2104. A closing page has no time for the asynchronous functions of WebCrypto,
 * which pages without TLS lack in any case.
 */

import { concat } from "./bytes.js";

const BLOCK = 64;
/** The first 32 bits of the fractional parts of a root of the first primes. */
const roots = (number: number, power: number): Uint32Array => {
  const primes: number[] = [];
  for (let next = 2; primes.length < number; next += 1) if (primes.every((prime) => next % prime !== 0)) primes.push(next);
  return Uint32Array.from(primes, (prime) => (prime ** power % 1) * 2 ** 32);
};
const ROUNDS = roots(64, 1 / 3);
const START = roots(8, 1 / 2);

export function sha256(data: Uint8Array): Uint8Array {
  const blocks = Math.ceil((data.length + 9) / BLOCK);
  const view = new DataView(new ArrayBuffer(blocks * BLOCK));
  new Uint8Array(view.buffer).set(data);
  view.setUint8(data.length, 0x80);
  view.setBigUint64(view.byteLength - 8, BigInt(data.length) * 8n);
  const state = Uint32Array.from(START);
  for (let block = 0; block < blocks; block += 1) compress(state, view, block * BLOCK);
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, place) => {
    out.setUint32(4 * place, word);
  });
  return new Uint8Array(out.buffer);
}

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
  const padded = new Uint8Array(BLOCK);
  padded.set(key.length > BLOCK ? sha256(key) : key);
  const inner = sha256(concat(padded.map((byte) => byte ^ 0x36), message));
  return sha256(concat(padded.map((byte) => byte ^ 0x5c), inner));
}

function compress(state: Uint32Array, view: DataView, from: number): void {
  const words = new Uint32Array(64);
  const at = (place: number): number => words[place] ?? 0;
  for (let place = 0; place < 16; place += 1) words[place] = view.getUint32(from + 4 * place);
  for (let place = 16; place < 64; place += 1) {
    const [early, late] = [at(place - 15), at(place - 2)];
    const mixed = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    words[place] = at(place - 16) + mixed + at(place - 7) + (turned(late, 17) ^ turned(late, 19) ^ (late >>> 10));
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let place = 0; place < 64; place += 1) {
    const chosen = (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g));
    const first = h + chosen + (ROUNDS[place] ?? 0) + at(place);
    const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, place) => {
    state[place] = (state[place] ?? 0) + word;
  });
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
