import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { hex, unhex } from "../src/bytes.js";
import { campaignOf } from "../src/campaign/at-once.js";
import { discoveryReport, hashOf, padded } from "../src/discovery.js";
import { openMaker } from "../src/making.js";
import { Answers } from "../src/store/answers.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { readCampaign, wordsOf } from "../src/testing.js";
import { Policy } from "../src/trust/policy.js";
import { sealAlike, sealBy } from "../src/wire/sealing.js";
import { multiplyNatively, multiplyPortably, publicKey, x25519 } from "../src/wire/x25519.js";
import { utf8 } from "../src/bytes.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const numbered = (entries: readonly Entry[]): [number, Entry][] => entries.map((entry, place) => [place, entry]);

describe("sealing", () => {
  const { accept, refuse } = vectors("sealing");

  const sealed = ({ rule, public_key: to, plain, key, ephemeral_secret: secret }: Entry): Promise<Uint8Array> =>
    rule === "seal_alike"
      ? sealAlike(unhex(to), unhex(plain), unhex(key))
      : sealBy(unhex(secret), unhex(to), unhex(plain));

  test.each(numbered(accept))("accept %i", async (_, entry) => {
    expect(hex(await sealed(entry))).toBe(entry.sealed);
  });

  test.each(numbered(refuse.filter(({ rule }) => rule === "seal")))("refuse %i", async (_, entry) => {
    expect(await refusal(() => sealed(entry))).toMatch(/not a valid X25519 public key/);
  });

  test("a box hides what it holds behind a key that HSalsa20 makes, and a secret is wiped", async () => {
    const [secret, to] = [new Uint8Array(32).fill(7), await publicKey(new Uint8Array(32).fill(9))];
    const box = await sealBy(secret, to, utf8("hello"));
    expect(secret.every((byte) => byte === 0)).toBe(true);
    // Not the plain product as the key.
    const product = await x25519(new Uint8Array(32).fill(7), to);
    expect(() => xsalsa20poly1305(product, new Uint8Array(24)).decrypt(box.subarray(32))).toThrow();
  });
});

describe("X25519", () => {
  const file = JSON.parse(
    readFileSync(new URL("../../../vectors/v1/wycheproof_x25519.json", import.meta.url), "utf8"),
  ) as Entry;
  const products: Entry[] = file.testGroups.flatMap(({ tests }: Entry) => tests);

  test.each([
    ["WebCrypto", multiplyNatively, 1],
    // Slower by far: every fifth.
    ["the portable curve", multiplyPortably, 5],
  ] as const)("%s gives Wycheproof's products", async (_, multiply, step) => {
    for (const { private: secret, public: point, shared } of products.filter((_, place) => place % step === 0)) {
      const product = await multiply(unhex(secret), unhex(point));
      expect(hex(product ?? new Uint8Array(32)), point).toBe(shared);
    }
  }, 60_000);

  test("both ways agree on random keys", async () => {
    for (let round = 0; round < 10; round += 1) {
      const secret = crypto.getRandomValues(new Uint8Array(32));
      const point = await publicKey(crypto.getRandomValues(new Uint8Array(32)));
      expect(await multiplyNatively(secret, point)).toEqual(await multiplyPortably(secret, point));
    }
  });

  test("without WebCrypto the portable curve takes over", async () => {
    const secret = new Uint8Array(32).fill(3);
    const key = await publicKey(secret);
    const refused = vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(new DOMException("no", "NotSupportedError"));
    expect(await publicKey(secret)).toEqual(key);
    expect(refused).toHaveBeenCalled();
    refused.mockRestore();
  });
});

describe("discovery", () => {
  const { accept, refuse } = vectors("discovery");
  const formatOf = (entry: Entry) => ({
    binding: unhex(entry.binding),
    hashKey: unhex(entry.hash_key),
    maxValueBytes: entry.max_value_bytes,
    analyzer: unhex(entry.analyzer),
    auxServer: unhex(entry.aux_server),
  });
  const never = (): never => {
    throw new Error("nothing fresh is needed");
  };

  test.each(numbered(accept))("accept %i", async (_, entry) => {
    const value = entry.value ?? undefined;
    const fresh = entry.fresh === undefined ? never : () => unhex(entry.fresh);
    const report = await discoveryReport(formatOf(entry), value, fresh, unhex(entry.ephemeral_secret));
    expect(hex(report)).toBe(entry.report);
    if (value !== undefined) expect(hex(hashOf(value, formatOf(entry)))).toBe(entry.hash);
    if (entry.padded !== undefined) expect(hex(padded(value, formatOf(entry)))).toBe(entry.padded);
  });

  test.each(numbered(refuse.filter(({ reason }) => reason === "value_too_long")))("refuse %i", async (_, entry) => {
    const said = await refusal(() => discoveryReport(formatOf(entry), entry.value, never, new Uint8Array(32).fill(1)));
    expect(said).toMatch(/must have at most \d+$/);
    expect(said).not.toContain(entry.value);
  });
});

describe("clients", () => {
  const { accept, refuse } = vectors("clients");
  const campaigns = vectors("campaigns").accept;

  const SAID: Readonly<Record<string, RegExp>> = {
    value_too_long: /must have at most \d+ bytes/,
    no_such_stream: /carries no discovery reports|carries no frequency reports/,
    no_hash_key: /holds no hash key/,
    another_dictionary: /the dictionary is not the campaign's/,
    no_valid_key: /is not valid now/,
  };

  async function report(entry: Entry): Promise<Uint8Array> {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(entry.at) });
    const { file } = campaigns.find(({ name }) => name === entry.campaign) as Entry;
    const words = wordsOf((entry.words ?? []).map((word: string) => BigInt(`0x${word}`)));
    const maker = await openMaker({
      campaign: campaignOf(file),
      policy: Policy.trusting(),
      signature: undefined,
      log: undefined,
      dictionary: entry.items && utf8(entry.items.map((item: string) => `${item}\n`).join("")),
      answers: new Answers(new MemoryStore()),
      random: { words, secret: () => unhex(entry.ephemeral_secret ?? "00".repeat(32)) },
    });
    maker.requireValid(Date.now(), [entry.stream]);
    if (entry.stream === "discovery" && entry.value !== null) await maker.requireShort(entry.value);
    const made = await (entry.stream === "reports" ? maker.report(entry.value) : maker.discoveryReport(entry.value));
    expect(() => words(1), "every word is taken").toThrow(/must be more/);
    expect(made.length).toBe(readCampaign(utf8(JSON.stringify(file))).sealedBytes(entry.stream));
    return made;
  }

  afterEach(() => {
    vi.useRealTimers();
  });

  test.each(numbered(accept))("accept %i", async (_, entry) => {
    expect(hex(await report(entry))).toBe(entry.report);
  });

  test.each(numbered(refuse))("refuse %i", async (_, entry) => {
    expect(await refusal(() => report(entry))).toMatch(SAID[entry.reason] ?? /^$/);
  });
});
