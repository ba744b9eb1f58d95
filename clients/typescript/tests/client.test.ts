import { xsalsa20poly1305, hsalsa } from "@noble/ciphers/salsa.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ristretto255_oprf } from "@noble/curves/ed25519.js";
import { blake2b, concat, hex, unhex, utf8 } from "../src/bytes.js";
import { Budget } from "../src/budget/budget.js";
import { Client, type ClientOptions } from "../src/client.js";
import { BudgetSpent, OptedOut, OverCap, Unanswered, Untrusted, UsageError } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { publicKey, x25519 } from "../src/wire/x25519.js";
import { refusal } from "./refusals.js";
import { vectors, type Entry } from "./vectors.js";

const ITEMS = ["one", "two", "three", "größer"];
const DICTIONARY = utf8(ITEMS.map((item) => `${item}\n`).join(""));
const ANALYZER = new Uint8Array(32).fill(11);
const AUX = new Uint8Array(32).fill(12);

/** Return a key's section for a private key of this test. */
async function keyOf(secret: Uint8Array): Promise<Entry> {
  const key = await publicKey(secret);
  return {
    id: hex(blake2b(key, { length: 8 })),
    key: hex(key),
    not_before: "2020-01-01T00:00:00Z",
    not_after: "2120-01-01T00:00:00Z",
  };
}

const EVALUATOR = ristretto255_oprf.voprf.generateKeyPair();

/** Return the section of this test's evaluator, or of a key that is none. */
function evaluatorKey(key: Uint8Array = EVALUATOR.publicKey): Entry {
  const id = hex(blake2b(key, { length: 8, person: "evaluator key" }));
  return { id, key: hex(key), not_before: "2020-01-01T00:00:00Z", not_after: "2120-01-01T00:00:00Z" };
}

/** Answer an evaluation as an evaluator does. */
function answered(evaluation: Uint8Array, { secretKey, publicKey } = EVALUATOR): Uint8Array {
  const { evaluated, proof } = ristretto255_oprf.voprf.blindEvaluate(secretKey, publicKey, evaluation);
  return concat(evaluated, proof);
}

/** Return a campaign of the vectors with keys whose private halves this test has. */
async function campaign(name: string, changes: Entry = {}): Promise<Uint8Array> {
  const { file } = vectors("campaigns").accept.find((entry) => entry.name === name) as Entry;
  const keys = {
    analyzer: [await keyOf(ANALYZER)],
    aux_server: file.discovery ? [await keyOf(AUX)] : [],
    evaluator: file.discovery?.hash === "oblivious" ? [evaluatorKey()] : [],
  };
  return utf8(JSON.stringify({ ...file, keys, ...changes }));
}

async function open(name: string, options: Partial<ClientOptions> = {}, changes: Entry = {}): Promise<Client> {
  const policy = Policy.trusting();
  return Client.open({ campaign: await campaign(name, changes), policy, dictionary: DICTIONARY, ...options });
}

const often = { shuffle: { cap: 1000, minimum_batch: 1000, delta: 1e-8 } };

/** Open a sealed box. */
async function opened(box: Uint8Array, secret: Uint8Array): Promise<Uint8Array> {
  const words = (bytes: Uint8Array): Uint32Array => new Uint32Array(Uint8Array.from(bytes).buffer);
  const shared = await x25519(secret, box.subarray(0, 32));
  const key = new Uint32Array(8);
  hsalsa(words(utf8("expand 32-byte k")), words(shared), new Uint32Array(4), key);
  const nonce = blake2b(concat(box.subarray(0, 32), await publicKey(secret)), { length: 24 });
  return xsalsa20poly1305(new Uint8Array(key.buffer), nonce).decrypt(box.subarray(32));
}

afterEach(() => {
  vi.useRealTimers();
});

describe("a client", () => {
  test("makes reports of one length that the analyzer opens", async () => {
    const client = await open("grr", {}, often);
    const seen = new Set<number>();
    for (let round = 0; round < 60; round += 1) {
      const box = await client.report(round % 2 === 0 ? "one" : "nothing listed");
      expect(box.length).toBe(client.sealedBytes("reports"));
      seen.add((await opened(box, ANALYZER)).at(-1) ?? -1);
    }
    // Two of five answers have less than 0.6 together: all 60 are of two with probability below 10 * 0.6**60 < 1e-12.
    expect(seen.size).toBeGreaterThan(2);
    expect(Math.max(...seen)).toBeLessThan(5);
  });

  test("makes discovery reports of one length, and names no value that is too long", async () => {
    const client = await open("both", {}, often);
    const lengths = new Set<number>();
    for (const value of [undefined, "two", "new", "\u202e", "x".repeat(24)]) {
      lengths.add((await client.discoveryReport(value)).length);
    }
    expect([...lengths]).toEqual([client.sealedBytes("discovery")]);
    const said = await refusal(() => client.discoveryReport("secret".repeat(10)));
    expect(said).toMatch(/at most 24 bytes/);
    expect(said).not.toContain("secret");
  });

  test("two reports of a new value have one hash and one box inside, two with nothing have not", async () => {
    const client = await open("both", {}, often);
    const inside = async (value: string | undefined): Promise<string> =>
      hex(await opened(await client.discoveryReport(value), AUX));
    expect(await inside("new")).toBe(await inside("new"));
    expect(await inside(undefined)).not.toBe(await inside(undefined));
    expect(await inside("two")).not.toBe(await inside("two"));
  });

  test("asks an evaluator for names: two reports of a new value have one hash and one box inside", async () => {
    const client = await open("oblivious", {}, often);
    const inside = async (value: string | undefined): Promise<string> => {
      const pending = await client.pendingDiscovery(value);
      const finished = await pending.finish(answered(pending.evaluation));
      expect([pending.evaluation.length, finished.length, pending.blank.length]).toEqual([32, ...lengths, ...lengths]);
      expect(hex(await opened(pending.blank, AUX))).not.toBe(hex(await opened(finished, AUX)));
      return hex(await opened(finished, AUX));
    };
    const lengths = [client.sealedBytes("discovery")];
    const first = await inside("new");
    expect(await inside("new")).toBe(first);
    expect(await inside("newer")).not.toBe(first);
    expect(await inside(undefined)).not.toBe(await inside(undefined));
    // A listed value has nothing to discover, and asks as well.
    expect(await inside("two")).not.toBe(await inside("two"));
    // The hash is that of the evaluator's function: whoever holds the key and a guess can make it, and nobody else.
    const binding = unhex(first).slice(0, 16);
    const output = (ristretto255_oprf.voprf as unknown as { evaluate(key: Uint8Array, input: Uint8Array): Uint8Array }).evaluate(EVALUATOR.secretKey, concat(binding, utf8("new")));
    expect(first.slice(32, 96)).toBe(hex(blake2b(new Uint8Array(), { length: 32, person: "bin hash", key: output })));
  });

  test("refuses an answer by another key, and one of another length", async () => {
    const client = await open("oblivious", {}, often);
    const { evaluation, finish } = await client.pendingDiscovery("new");
    const other = ristretto255_oprf.voprf.generateKeyPair();
    await expect(finish(answered(evaluation, other))).rejects.toThrow(Unanswered);
    await expect(finish(answered(evaluation).subarray(1))).rejects.toThrow(/has 95 bytes, must have 96/);
    await expect(finish(concat(answered(evaluation), new Uint8Array(1)))).rejects.toThrow(/has 97 bytes, must have 96/);
    await finish(answered(evaluation));
  });

  test("asks only in a campaign with an evaluator, whose key is one", async () => {
    const keyed = await open("both", {}, often);
    await expect(keyed.pendingDiscovery("new")).rejects.toThrow(/has no evaluator: use discoveryReport/);
    const oblivious = await open("oblivious", {}, often);
    await expect(oblivious.discoveryReport("new")).rejects.toThrow(/has an evaluator: use pendingDiscovery/);
    for (const client of [keyed, oblivious]) expect((await client.spent()).epsilon).toBe(0);
    for (const key of [new Uint8Array(32), new Uint8Array(32).fill(255)]) {
      const { keys } = JSON.parse(new TextDecoder().decode(await campaign("oblivious"))) as Entry;
      const wrong = { ...often, keys: { ...keys, evaluator: [evaluatorKey(key)] } };
      await expect(open("oblivious", {}, wrong)).rejects.toThrow(/is not a valid ristretto255 public key/);
    }
  });

  test("counts and charges a pending report when it begins", async () => {
    const store = new MemoryStore();
    const client = await open("oblivious", { store, budget: new Budget(store, { lifetime: 1 }) }, often);
    const told = async (): Promise<string> => {
      const { evaluation, finish } = await client.pendingDiscovery("new");
      return hex(await opened(await finish(answered(evaluation)), AUX));
    };
    const first = await told();
    expect((await client.spent()).epsilon).toBe(1);
    // The budget is spent: reports with nothing to discover follow, and ask as well.
    expect(new Set([first, await told(), await told()]).size).toBe(3);
  });

  test("remembers its answer if the campaign says so, in a store alone", async () => {
    const store = new MemoryStore();
    await expect(open("memory")).rejects.toThrow(UsageError);
    const inside = async (value: string): Promise<string> => {
      const client = await open("memory", { store }, often);
      return hex(await opened(await client.report(value), ANALYZER));
    };
    const first = await inside("three");
    for (let round = 0; round < 20; round += 1) expect(await inside("three")).toBe(first);
  });

  test("going back to an epoch renews neither memory nor budget, whatever the epochs' numbers are", async () => {
    const store = new MemoryStore();
    const [first, other] = [await campaign("memory", often), await campaign("memory", { ...often, epoch: 1000 })];
    const inside = async (file: Uint8Array): Promise<string> => {
      const client = await open("memory", { store, campaign: file });
      return hex(await opened(await client.report("three"), ANALYZER));
    };
    const spent = async (): Promise<number> => (await new Budget(store).spent()).epsilon;
    const before = await inside(first);
    const once = await spent();
    await inside(other);
    expect(await spent()).toBe(2 * once);
    for (let round = 0; round < 20; round += 1) expect(await inside(first)).toBe(before);
    expect(await spent()).toBe(2 * once);
  });

  test("answers more different values than it remembers as the last of them", async () => {
    const store = new MemoryStore();
    const client = await open("memory", { store }, { ...often, memory_values: 1 });
    const inside = async (value: string): Promise<string> => hex(await opened(await client.report(value), ANALYZER));
    const first = await inside("one");
    for (const value of ITEMS) expect(await inside(value)).toBe(first);
    await client.forget();
    await expect(client.report("one")).rejects.toThrow(OptedOut);
    await new Budget(store).optIn();
    const after = new Set<string>();
    for (let round = 0; round < 8; round += 1) after.add(await inside("one"));
    expect(after.size).toBe(1);
  });

  test("makes no more than the cap, and no more than the budget", async () => {
    const capped = await open("grr");
    await capped.report("one");
    await expect(capped.report("one")).rejects.toThrow(OverCap);
    const store = new MemoryStore();
    const spent = new Budget(store, { lifetime: 1, whenSpent: "nothing" });
    const client = await open("grr", { store, budget: spent }, often);
    await client.report("one");
    await expect(client.report("one")).rejects.toThrow(BudgetSpent);
    expect((await client.spent()).epsilon).toBe(1);
  });

  test("once its budget is spent, reports of any value are of other", async () => {
    const store = new MemoryStore();
    const client = await open("memory", { store, budget: new Budget(store, { lifetime: 0 }) }, often);
    const inside = new Set<string>();
    for (let round = 0; round < 40; round += 1) inside.add(hex(await opened(await client.report("one"), ANALYZER)));
    // Drawn afresh, and no memory is touched.
    expect(inside.size).toBeGreaterThan(1);
    expect(await store.change([{ prefix: "answer/", most: 9 }], ([found = []]) => ({ result: found.length }))).toBe(0);
  });

  test("refuses what its policy refuses before it looks at the dictionary", async () => {
    const { policy } = vectors("policies").accept[0] as Entry;
    const strict = Policy.parse({ ...policy, campaign_id: "vectors.grr" }, new Newest(new MemoryStore()));
    await expect(open("grr", { policy: strict, dictionary: utf8("another\n") })).rejects.toThrow(Untrusted);
    await expect(open("grr", { dictionary: utf8("another\n") })).rejects.toThrow(/the dictionary is not/);
  });

  test("makes nothing once the keys that vouch have expired, however long it lives", async () => {
    const { policy, at, signature, campaign: name } = vectors("policies").accept[0] as Entry;
    const { file } = vectors("campaigns").accept.find((entry) => entry.name === name) as Entry;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(at) });
    const client = await Client.open({
      campaign: utf8(JSON.stringify(file)),
      policy: Policy.parse(policy, new Newest(new MemoryStore())),
      signature: utf8(JSON.stringify(signature)),
      dictionary: DICTIONARY,
    });
    await client.report("one");
    vi.setSystemTime(Date.parse("2027-01-01T00:00:00Z"));
    const said = await refusal(() => client.report("one"));
    expect(said).toMatch(/the keys that vouch for campaign vectors.grr were valid until 2027-01-01T00:00:00.000Z/);
  });

  test("refuses a value that is neither string nor number", async () => {
    const client = await open("grr");
    await expect(client.report(7n as unknown as string)).rejects.toThrow(/must be a string or a number/);
  });
});
