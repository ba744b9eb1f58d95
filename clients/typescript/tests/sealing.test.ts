import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { blake2b, bytesOf, concat, hex, integerOf, unhex, utf8 } from "../src/bytes.js";
import { campaignOf } from "../src/campaign/at-once.js";
import { obliviousOf, evaluationsOf, type Evaluations } from "../src/discovery/oblivious.js";
import { blankName, discoveryReport, keyedName, padded, requireShort, type DiscoveryFormat } from "../src/discovery/report.js";
import { Unanswered } from "../src/errors.js";
import { openMaker } from "../src/making.js";
import { Answers } from "../src/store/answers.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { nameOf, readCampaign, wordsOf } from "../src/testing.js";
import { Policy } from "../src/trust/policy.js";
import { sealAlike, sealBy } from "../src/wire/sealing.js";
import { multiplyNatively, multiplyPortably, publicKey, x25519 } from "../src/wire/x25519.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const formatOf = (entry: Entry): DiscoveryFormat => ({
  binding: unhex(entry.binding),
  maxValueBytes: entry.max_value_bytes,
  analyzer: unhex(entry.analyzer),
  auxServer: unhex(entry.aux_server),
});
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
  test.each(numbered(accept))("accept %i", async (_, entry) => {
    const value = entry.value ?? undefined;
    const format = formatOf(entry);
    const name = value === undefined ? blankName(unhex(entry.fresh)) : keyedName(format, unhex(entry.hash_key), value);
    expect(hex(name.hash)).toBe(entry.hash);
    expect(hex(await discoveryReport(format, value, name, unhex(entry.ephemeral_secret)))).toBe(entry.report);
    if (entry.padded !== undefined) expect(hex(padded(value, formatOf(entry)))).toBe(entry.padded);
  });

  test.each(numbered(refuse.filter(({ reason }) => reason === "value_too_long")))("refuse %i", async (_, entry) => {
    const name = blankName(new Uint8Array(64));
    const said = await refusal(() => discoveryReport(formatOf(entry), entry.value, name, new Uint8Array(32).fill(1)));
    expect(said).toMatch(/must have at most \d+$/);
    expect(said).not.toContain(entry.value);
  });
});

describe("evaluations to an evaluator", () => {
  const { accept, refuse } = vectors("oblivious");
  const of = (entries: readonly Entry[], rule: string): [number, Entry][] =>
    numbered(entries.filter((entry) => entry.rule === rule));

  /** Return the evaluation with given blinds: the library draws a number, which it takes modulo the order less 1, and adds 1. */
  const asked = ({ inputs, blinds }: Entry): Evaluations => {
    const left = blinds.map((blind: string) => integerOf(unhex(blind)));
    return evaluationsOf(inputs.map(unhex), (count) => bytesOf(left.shift() - 1n, count));
  };

  test.each(of(accept, "ask"))("accept the answer %i", (_, entry) => {
    const evaluations = asked(entry);
    expect(hex(evaluations.blinded)).toBe(entry.blinded);
    expect(evaluations.finish(unhex(entry.answer), unhex(entry.public_key)).map(hex)).toEqual(entry.outputs);
  });

  test.each(of(refuse, "ask"))("refuse the answer %i", async (_, entry) => {
    const evaluations = asked(entry);
    expect(hex(evaluations.blinded)).toBe(entry.blinded);
    const finish = (): unknown => evaluations.finish(unhex(entry.answer), unhex(entry.public_key));
    expect(finish, entry.what).toThrow(Unanswered);
    if (entry.reason === "wrong_length") expect(finish).toThrow(/bytes, must have/);
    if (entry.reason === "not_a_key") {
      expect(() => obliviousOf(unhex(entry.public_key), blake2b)).toThrow(/is not a valid ristretto255 public key/);
    }
  });

  test.each(of(accept, "report"))("accept the report %i", async (_, entry) => {
    const format = formatOf(entry);
    const name = nameOf(unhex(entry.output));
    expect([hex(name.hash), hex(name.boxKey)]).toEqual([entry.hash, entry.box_key]);
    const inner = concat(format.binding, padded(entry.value, format));
    expect(hex(await sealAlike(format.analyzer, inner, name.boxKey))).toBe(entry.inner);
    expect(hex(await discoveryReport(format, entry.value, name, unhex(entry.ephemeral_secret)))).toBe(entry.report);
  });

  test("give what RFC 9497 says, mode VOPRF, ristretto255-SHA512", () => {
    const path = new URL("../../../tests/evaluator/rfc9497_voprf.json", import.meta.url);
    const { suite } = JSON.parse(readFileSync(path, "utf8")) as Entry;
    expect(suite.vectors.length).toBe(3);
    for (const { Input, Blind, BlindedElement, EvaluationElement, Output, Proof } of suite.vectors) {
      const evaluations = asked({ inputs: Input.split(","), blinds: Blind.split(",") });
      expect(hex(evaluations.blinded)).toBe(BlindedElement.replaceAll(",", ""));
      const answer = unhex(EvaluationElement.replaceAll(",", "") + Proof.proof);
      expect(evaluations.finish(answer, unhex(suite.pkSm)).map(hex)).toEqual(Output.split(","));
    }
  });

  test("tell nothing of a value: two of one value differ, and a blank asks too", () => {
    const random = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
    const inputs = [utf8("one"), utf8("one"), undefined, undefined];
    const evaluations = inputs.map((input) => hex(evaluationsOf([input], random).blinded));
    expect(new Set(evaluations).size).toBe(4);
    expect(evaluations.map(({ length }) => length)).toEqual([64, 64, 64, 64]);
  });
});

describe("clients", () => {
  const { accept, refuse } = vectors("clients");
  const campaigns = vectors("campaigns").accept;

  const SAID: Readonly<Record<string, RegExp>> = {
    value_too_long: /must have at most \d+ bytes/,
    no_such_stream: /carries no discovery reports|carries no frequency reports/,
    no_hash_key: /holds no hash key/,
    another_dictionary: /the dictionary is not the campaign's|the dictionary has more items than/,
    no_valid_key: /is not valid now/,
  };

  async function report(entry: Entry): Promise<Uint8Array> {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(entry.at) });
    const { file } = campaigns.find(({ name }) => name === entry.campaign) as Entry;
    const words = wordsOf((entry.words ?? []).map((word: string) => BigInt(`0x${word}`)));
    // With noise, the box for the analyzer comes first.
    const secrets = [entry.ephemeral_secret, entry.layer_secret];
    const maker = await openMaker({
      campaign: campaignOf(file),
      policy: Policy.trusting(),
      signature: undefined,
      log: undefined,
      dictionary: entry.items && utf8(entry.items.map((item: string) => `${item}\n`).join("")),
      answers: new Answers(new MemoryStore()),
      random: { words, secret: () => unhex(secrets.shift() ?? "00".repeat(32)) },
    });
    maker.requireValid(Date.now(), [entry.stream]);
    if (entry.stream === "discovery") requireShort(await maker.newOf(entry.value ?? ""), maker.requireDiscovery());
    const made = await (entry.stream === "reports" ? maker.report(entry.value, entry.by) : maker.discoveryReport(entry.value));
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
