/**
 * BLAKE2b (RFC 7693), with person, salt and key.
 *
 * BLAKE2b is written here because a library's BLAKE2b adds 4 kB gzipped to a page: BLAKE2b shares modules of the
 * library with SHA-2, which the curve needs, and a page that is split into several files loads these modules whole. The
 * tests compare both.
 */

const BLOCK = 128;
const ROUNDS = 12;
const WORD = 2 ** 32;
/** 64-bit words are pairs of 32 bits, the low half first. */
const START = Uint32Array.of(
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
);
/** Offsets of the block's words by round: ten rows; the last two rounds use the first two rows again. */
const ORDER = Uint8Array.from(
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d" +
    "2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0",
  (digit) => 2 * parseInt(digit, 16),
);
/** Offsets of the four words of each step: the columns, then the diagonals. */
const STEPS = Array.from({ length: 8 }, (_, step) =>
  [0, 1, 2, 3].map((row) => 8 * row + 2 * ((step + (step < 4 ? 0 : row)) & 3)),
);

/** The parameters that are hashed along with the data. */
export interface Blake2bOptions {
  /** Length of the hash in bytes: at most 64. */
  readonly length: number;
  /** At most 16 bytes, like the salt. The key has at most 64 bytes. */
  readonly person: Uint8Array;
  readonly salt: Uint8Array | undefined;
  readonly key: Uint8Array | undefined;
}

/** Return the hash of the data. */
export function blake2b(data: Uint8Array, { length, person, salt, key }: Blake2bOptions): Uint8Array {
  const parameters = new Uint8Array(64);
  parameters.set([length, key?.length ?? 0, 1, 1]);
  parameters.set(salt ?? [], 32);
  parameters.set(person ?? [], 48);
  const state = START.map((half, place) => half ^ wordAt(parameters, 4 * place));
  let hashed = 0;
  const take = (block: Uint8Array, length: number, last: boolean): void => {
    hashed += length;
    compress(state, block, hashed, last);
  };
  if (key !== undefined) take(padded(key), BLOCK, data.length === 0);
  let place = 0;
  for (; place + BLOCK < data.length; place += BLOCK) take(data.subarray(place, place + BLOCK), BLOCK, false);
  const rest = data.subarray(place);
  if (rest.length > 0 || key === undefined) take(padded(rest), rest.length, true);
  return Uint8Array.from({ length }, (_, byte) => (state[byte >>> 2] ?? 0) >>> (8 * (byte & 3)));
}

function padded(bytes: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK);
  block.set(bytes);
  return block;
}

function compress(state: Uint32Array, block: Uint8Array, hashed: number, last: boolean): void {
  const v = new Uint32Array(32);
  v.set(state);
  v.set(START, 16);
  v[24] = at(v, 24) ^ hashed;
  v[25] = at(v, 25) ^ Math.floor(hashed / WORD);
  if (last) {
    v[28] = ~at(v, 28);
    v[29] = ~at(v, 29);
  }
  const words = new Uint32Array(32).map((_, place) => wordAt(block, 4 * place));
  for (let round = 0; round < ROUNDS; round += 1) {
    let taken = (round % 10) * 16;
    for (const [a = 0, b = 0, c = 0, d = 0] of STEPS) {
      mix(v, a, b, c, d, words, at(ORDER, taken), true);
      mix(v, a, b, c, d, words, at(ORDER, taken + 1), false);
      taken += 2;
    }
  }
  for (let place = 0; place < 16; place += 1) state[place] = at(state, place) ^ at(v, place) ^ at(v, place + 16);
}

/** Mix one word of the block into four words: the first or the second half of RFC 7693's G. */
function mix(
  v: Uint32Array,
  a: number,
  b: number,
  c: number,
  d: number,
  words: Uint32Array,
  place: number,
  first: boolean,
): void {
  let low = at(v, a) + at(v, b) + at(words, place);
  v[a + 1] = at(v, a + 1) + at(v, b + 1) + at(words, place + 1) + Math.floor(low / WORD);
  v[a] = low;
  let high = at(v, d + 1) ^ at(v, a + 1);
  low = at(v, d) ^ at(v, a);
  // The word is rotated by 32 bits in the first half, and by 16 bits in the second.
  v[d] = first ? high : (low >>> 16) | (high << 16);
  v[d + 1] = first ? low : (high >>> 16) | (low << 16);
  low = at(v, c) + at(v, d);
  v[c + 1] = at(v, c + 1) + at(v, d + 1) + Math.floor(low / WORD);
  v[c] = low;
  high = at(v, b + 1) ^ at(v, c + 1);
  low = at(v, b) ^ at(v, c);
  // The word is rotated by 24 bits in the first half, and by 63 bits in the second.
  v[b] = first ? (low >>> 24) | (high << 8) : (low << 1) | (high >>> 31);
  v[b + 1] = first ? (high >>> 24) | (low << 8) : (high << 1) | (low >>> 31);
}

/** Return four bytes as an integer, little-endian. */
function wordAt(bytes: Uint8Array, place: number): number {
  return at(bytes, place) | (at(bytes, place + 1) << 8) | (at(bytes, place + 2) << 16) | (at(bytes, place + 3) << 24);
}

function at(numbers: Uint8Array | Uint32Array, place: number): number {
  return numbers[place] ?? 0;
}
