import { blake2b as peer } from "@noble/hashes/blake2.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { blake2b as full } from "../src/blake2b.js";
import { blake2b, hex, utf8 } from "../src/bytes.js";

test("BLAKE2b gives the hash of RFC 7693", () => {
  expect(hex(blake2b(utf8("abc"), { length: 64 }))).toBe(
    "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1" +
      "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
  );
});

test.each([0, 1, 64, 127, 128, 129, 255, 256, 257, 1000])("BLAKE2b of %i bytes is the library's", (size) => {
  const data = Uint8Array.from({ length: size }, (_, place) => place * 37);
  const key = data.slice(0, 32);
  for (const length of [8, 16, 32, 64]) {
    expect(hex(blake2b(data, { length }))).toBe(hex(peer(data, { dkLen: length })));
    if (size > 0) expect(hex(blake2b(data, { length, key }))).toBe(hex(peer(data, { dkLen: length, key })));
  }
});

test("BLAKE2b of any data, key, salt and person is the library's", () => {
  const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength });
  fc.assert(
    fc.property(bytes(0, 600), bytes(1, 64), bytes(16, 16), bytes(16, 16), fc.integer({ min: 1, max: 64 }), (data, key, salt, person, length) => {
      const expected = peer(data, { dkLen: length, key, salt, personalization: person });
      expect(hex(full(data, { length, key, salt, person }))).toBe(hex(expected));
    }),
    { numRuns: 300 },
  );
});
