import { describe, expect, test } from "vitest";
import { hex, utf8 } from "../src/bytes.js";
import { campaignOf, parseCampaign } from "../src/campaign/at-once.js";
import type { Stream } from "../src/trust/asked.js";
import { refusal } from "./refusals.js";
import { askedOf, vectors, type Entry } from "./vectors.js";

const { accept, refuse } = vectors("campaigns");

const SAID: Readonly<Record<string, RegExp>> = {
  wrong_format: /format must be 2/,
  missing_field: / is missing: it must be given/,
  unknown_field: /has a field that is not one of \S+, /,
  wrong_id: /: id must be text/,
  out_of_range: /must be a (whole )?number in/,
  wrong_type: /must be (an object|text|a|true or false)/,
  unknown_name: /must be (text of the form|one of)/,
  not_hex: /must be text of the form/,
  file_name: /path must be text/,
  key_id: /but the key has id/,
  key_time: /not_(before|after) must/,
  one_key_a_role: /must have one key|must be a list of at most 1/,
  one_key_for_two_roles: /one key is of both roles/,
  no_stream: /mechanism, noise or discovery is missing/,
  of_no_use: /memory/,
  hash_key: /one of hash_key and hash_key_commitment must be there/,
  integer_too_large: /has an integer above 2\*\*53 - 1/,
  sample: /: sample: /,
  number: /number (?:must have|needs)|needs number/,
  windows: /windows/,
  url: /url/,
  axes: /axes/,
  noise: /noise/,
  collectors: /: collectors must be/,
  mechanism: /: mechanism: /,
};

/** Apply a merge patch (RFC 7396). */
function patched(old: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const made: Record<string, unknown> = typeof old === "object" && old !== null && !Array.isArray(old) ? { ...old } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete made[key];
    else made[key] = patched(made[key], value);
  }
  return made;
}

describe("campaigns", () => {
  test.each(accept.map((entry) => [entry.name, entry] as const))("accept %s", (name, entry) => {
    const campaign = parseCampaign(utf8(JSON.stringify(entry.file)));
    const { sealedBytes, ...asked } = askedOf(name);
    expect(campaign).toMatchObject(asked);
    for (const [stream, length] of Object.entries(entry.sealed_bytes)) {
      expect(campaign.sealedBytes(stream as Stream)).toBe(length);
      expect(sealedBytes(stream as Stream)).toBe(length);
      expect(hex(campaign.binding(stream as Stream))).toBe(entry.bindings[stream]);
    }
  });

  test.each(refuse.map((entry, place) => [place, entry.reason, entry] as const))("refuse %i: %s", async (_, reason, entry) => {
    const file = accept.find(({ name }) => name === entry.name)?.file;
    // Not by JSON.stringify, which would round what must be refused.
    const text = JSON.stringify(patched(file, entry.patch));
    const large = JSON.stringify(entry.patch).includes("620136698185898") ? text.replace(/62013669818589\d+/, "620136698185898879") : text;
    expect(await refusal(() => parseCampaign(utf8(large)))).toMatch(SAID[reason] ?? /^$/);
  });

  test("a time in another form than Python writes is refused: the fingerprint is of the text", async () => {
    const { file } = accept[0] as Entry;
    for (const time of ["2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.5Z", "2020-01-01"]) {
      const key = { ...file.keys.analyzer[0], not_before: time };
      expect(await refusal(() => campaignOf(patched(file, { keys: { analyzer: [key] } })))).toMatch(/not_before must/);
    }
  });
});
