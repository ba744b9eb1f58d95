/** Client tokens as in the vectors. */

import { describe, expect, test } from "vitest";
import { unhex } from "../src/bytes.js";
import { Untrusted } from "../src/errors.js";
import { base64Url, collectorName, nonceOf, slotOf } from "../src/sender/token.js";
import { vectors } from "./vectors.js";

const { accept, refuse } = vectors("tokens");

describe("tokens", () => {
  test.each(accept.map((entry, place) => [place, entry] as const))("vector %i", (_, entry) => {
    const { role, secret, campaign, collectors, site, window } = entry;
    const name = role === "evaluator" ? "evaluator" : collectorName({ id: campaign, collectors }, site ?? undefined);
    expect(base64Url(nonceOf(unhex(secret), slotOf(role, campaign, name, window)))).toBe(entry.token);
  });

  test.each(refuse.map((entry, place) => [place, entry] as const))("refused %i", (_, { campaign, collectors, site }) => {
    expect(() => collectorName({ id: campaign, collectors }, site ?? undefined)).toThrow(Untrusted);
  });
});
