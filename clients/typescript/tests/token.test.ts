/** Client tokens as in the vectors, and hashes as in their standards. */

import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hex, unhex } from "../src/bytes.js";
import { Untrusted } from "../src/errors.js";
import { collectorName, derivedToken } from "../src/sender/token.js";
import { hmacSha256, sha256 } from "../src/sha256.js";
import { vectors } from "./vectors.js";

const { accept, refuse } = vectors("tokens");

describe("tokens", () => {
  test.each(accept.map((entry, place) => [place, entry] as const))("vector %i", (_, entry) => {
    const { role, secret, campaign, collectors, site, window } = entry;
    const name = role === "evaluator" ? "evaluator" : collectorName({ id: campaign, collectors }, site ?? undefined);
    expect(derivedToken(unhex(secret), role, campaign, name, window)).toBe(entry.token);
  });

  test.each(refuse.map((entry, place) => [place, entry] as const))("refused %i", (_, { campaign, collectors, site }) => {
    expect(() => collectorName({ id: campaign, collectors }, site ?? undefined)).toThrow(Untrusted);
  });
});

test("hashes of all lengths are those of another implementation", () => {
  for (let length = 0; length < 200; length += 1) {
    const data = Uint8Array.from({ length }, (_, place) => (place * 151 + length) & 255);
    expect(hex(sha256(data))).toBe(createHash("sha256").update(data).digest("hex"));
    expect(hex(hmacSha256(data, data))).toBe(createHmac("sha256", data).update(data).digest("hex"));
  }
});
