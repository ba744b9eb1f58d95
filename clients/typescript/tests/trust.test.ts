import { describe, expect, test } from "vitest";
import { hex, unhex } from "../src/bytes.js";
import { FormatError, HushcountError, Untrusted } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { valueOf } from "../src/store/store.js";
import { headOf, parseLog } from "../src/trust/campaign-log.js";
import { parseCampaignSignature, verifyCampaign } from "../src/trust/delegation.js";
import { isStrict, verifyEd25519, verifyNatively, verifyPortably } from "../src/trust/ed25519.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { parseSignature, parseVerifyKey, signedBytes, verify } from "../src/trust/signatures.js";
import { askedOf, vectors, type Entry } from "./vectors.js";

/** What a refusal says, by the reason in the vectors. */
const SAID: Readonly<Record<string, RegExp>> = {
  unknown_key: /was signed with key \w+, but trusted are/,
  wrong_signature: /is wrong: it was altered/,
  malformed: /./,
  key_not_valid: /valid from .* to .*, and it is/,
  other_terms: /with the terms/,
  after_last_epoch: /must be at most \d+: the operator must delegate anew/,
  other_evaluator_key: /with an evaluator's key that is delegated: the operator must delegate anew/,
  ended_delegation: /serial of the delegation of campaign \S+ is \d+, but the operator's restart ended all below \d+/,
  other_restart: /^the restart is of campaign/,
  replaced_publisher: /was signed under the delegation/,
  jump: /is more than 4096 epochs after epoch \d+/,
  not_ascending: /epochs must ascend/,
  older_epoch: /is older than epoch/,
  another_file: /is another file than/,
  another_history: /does not continue epoch/,
  another_campaign: /the policy is for/,
  epsilon: /^epsilon of a client's frequency reports/,
  discovery_epsilon: /^epsilon of discovery/,
  noise_epsilon: /^epsilon of noise of the mixes/,
  keyed: /^names of campaign .* are keyed/,
  delta: /^delta of/,
  min_batch: /^minimum batch of/,
  layer: /asks a sample in layer/,
  hosts: /names no hosts/,
  axes: /by an axis/,
  public_strata: /public strata/,
  take: /allows at most the/,
  least_share: /of all clients, the policy demands/,
  report_bytes: /^length of a report/,
  unsigned: /is unsigned/,
};

const signatures = vectors("signatures");

async function checkBytes({ keys, payload, purpose, signature }: Entry): Promise<void> {
  const parsed = keys.map((key: unknown) => parseVerifyKey(key, "the key"));
  await verify(parsed, unhex(payload), purpose, parseSignature(signature, "the signature"));
}

async function checkCampaign({ keys, campaign, at, signature }: Entry): Promise<void> {
  const parsed = keys.map((key: unknown) => parseVerifyKey(key, "the key"));
  const read = parseCampaignSignature(signature, "the signature");
  await verifyCampaign(parsed, askedOf(campaign), read, Date.parse(at));
}

function check(entry: Entry): Promise<void> {
  return entry.rule === "bytes" ? checkBytes(entry) : checkCampaign(entry);
}

/** Expect a refusal by an error of ours that says what the reason of the vector means. */
async function expectRefusal(work: Promise<unknown>, reason: string): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(HushcountError);
  expect((error as Error).message).toMatch(SAID[reason] ?? /^$/);
  if (reason === "malformed") expect(error).toBeInstanceOf(FormatError);
}

describe("signatures", () => {
  test.each(signatures.accept.map((entry, place) => [place, entry] as const))("accept %i", async (_, entry) => {
    await check(entry);
    if (entry.rule === "bytes") expect(hex(signedBytes(unhex(entry.payload), entry.purpose))).toBe(entry.signed_bytes);
  });

  test.each(signatures.refuse.map((entry, place) => [place, entry.reason, entry] as const))(
    "refuse %i: %s",
    async (_, reason, entry) => {
      await expectRefusal(
        (async () => {
          await check(entry);
        })(),
        reason,
      );
    },
  );
});

describe("Ed25519", () => {
  const strict = signatures.accept.filter(({ rule }) => rule === "bytes");

  test("both ways to verify accept what was signed, and refuse it with any byte altered", async () => {
    for (const { keys, signature, signed_bytes: message } of strict.slice(0, 2)) {
      const key = keys.find(({ id }: Entry) => id === signature.key_id).key;
      const [k, m, s] = [unhex(key), unhex(message), unhex(signature.signature)];
      expect(await verifyPortably(k, m, s)).toBe(true);
      expect(await verifyNatively(k, m, s)).toBe(true);
      for (let place = 0; place < s.length; place += 7) {
        const altered = s.slice();
        altered[place] = (altered[place] ?? 0) ^ 1;
        expect(await verifyPortably(k, m, altered)).toBe(false);
        expect(await verifyNatively(k, m, altered)).toBe(false);
      }
    }
  });

  test("keys and signatures of small order, and in another encoding, are refused before either way", async () => {
    const { keys, signature, signed_bytes: message } = strict[0] as Entry;
    const key = unhex(keys.find(({ id }: Entry) => id === signature.key_id).key);
    const good = unhex(signature.signature);
    const small = [
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000080",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      // Not below the field's order: another encoding of 0, 1, and 2.
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ].map(unhex);
    expect(isStrict(key, good)).toBe(true);
    for (const point of small) {
      expect(isStrict(point, good)).toBe(false);
      expect(isStrict(key, Uint8Array.from([...point, ...good.slice(32)]))).toBe(false);
    }
    // R = identity and S = 0 is valid for a key of small order by the equation alone.
    const forged = Uint8Array.from([...unhex(`01${"00".repeat(31)}`), ...new Uint8Array(32)]);
    expect(await verifyEd25519(unhex(`01${"00".repeat(31)}`), unhex(message), forged)).toBe(false);
    // S and S + the group's order satisfy the same equation.
    const order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    const other = good.slice();
    let carry = 0;
    for (let place = 0; place < 32; place += 1) {
      const sum = (good[32 + place] ?? 0) + (order[place] ?? 0) + carry;
      other[32 + place] = sum & 255;
      carry = sum >> 8;
    }
    expect(isStrict(key, other)).toBe(false);
  });

  test("a key that is not a point of the curve is refused by both implementations", async () => {
    const { signature, signed_bytes: message } = strict[0] as Entry;
    const good = unhex(signature.signature);
    // y = 2 has no x on the curve.
    const key = unhex(`02${"00".repeat(31)}`);
    expect(isStrict(key, good)).toBe(true);
    expect(await verifyNatively(key, unhex(message), good)).toBe(false);
    expect(await verifyPortably(key, unhex(message), good)).toBe(false);
  });
});

describe("logs", () => {
  const logs = vectors("logs");

  async function checkLog({ rule, log, kept, offered, signature }: Entry): Promise<unknown> {
    if (rule === "heads") return parseLog(log, "the log").heads;
    const id = "vectors.grr";
    const store = new MemoryStore();
    await store.change([], () => ({ put: kept === null ? [] : [[`newest/${id}`, kept]], result: undefined }));
    const head = headOf(offered.previous, offered.fingerprint);
    const campaign = { ...askedOf("grr"), id, previous: undefined, ...offered, head };
    const said = signature === undefined ? undefined : parseCampaignSignature(signature, "the signature");
    await new Newest(store).keep(campaign, log === undefined ? undefined : parseLog(log, "the log"), said);
    return store.change([`newest/${id}`], ([found]) => ({ result: valueOf(found) }));
  }

  test.each(logs.accept.map((entry, place) => [place, entry] as const))("accept %i", async (_, entry) => {
    const { heads, offered, head, serial } = entry;
    expect(await checkLog(entry)).toEqual(heads ?? { epoch: offered.epoch, head, serial });
  });

  test.each(logs.refuse.map((entry, place) => [place, entry.reason, entry] as const))(
    "refuse %i: %s",
    async (_, reason, entry) => {
      await expectRefusal(
        (async () => {
          await checkLog(entry);
        })(),
        reason,
      );
    },
  );
});

describe("policies", () => {
  const policies = vectors("policies");

  async function checkPolicy({ policy, campaign, at, signature }: Entry): Promise<void> {
    const read = Policy.parse(policy, new Newest(new MemoryStore()));
    const signed = signature === undefined ? undefined : parseCampaignSignature(signature, "the signature");
    await read.accept(askedOf(campaign), signed, undefined, Date.parse(at));
  }

  test.each(policies.accept.map((entry, place) => [place, entry] as const))("accept %i", async (_, entry) => {
    await checkPolicy(entry);
  });

  test.each(policies.refuse.map((entry, place) => [place, entry.reason, entry] as const))(
    "refuse %i: %s",
    async (_, reason, entry) => {
      await expectRefusal(
        (async () => {
          await checkPolicy(entry);
        })(),
        reason,
      );
    },
  );

  test("a policy that trusts accepts what is unsigned, and names no campaign", async () => {
    expect(await Policy.trusting().accept(askedOf("grr"), undefined)).toBe(Infinity);
    expect(Policy.trusting().campaignId).toBeUndefined();
  });

  test("a restart that the operator signed leads out of a history that was kept, once", async () => {
    const name = "second-epoch";
    const { policy, at } = policies.accept.find(({ campaign }) => campaign === name) as Entry;
    const restarted = signatures.accept.find(({ campaign, signature }) => campaign === name && signature.restart?.serial === 2) as Entry;
    const own = policies.accept.find(({ campaign, signature }) => campaign === name && !signature.delegation) as Entry;
    const key = `newest/${askedOf(name).id}`;
    const store = new MemoryStore();
    const deceive = (serial: number): Promise<void> =>
      store.change([], () => ({ put: [[key, { epoch: 1000, head: "0".repeat(64), serial }]], result: undefined }));
    const accept = (signature: unknown): Promise<number> =>
      Policy.parse(policy, new Newest(store)).accept(
        askedOf(name),
        parseCampaignSignature(signature, "the signature"),
        undefined,
        Date.parse(at),
      );
    await deceive(1);
    await expect(accept(own.signature)).rejects.toThrow(Untrusted);
    await accept(restarted.signature);
    await accept(own.signature);
    await deceive(2);
    await expect(accept(restarted.signature)).rejects.toThrow(Untrusted);
  });

  test("a refused campaign is not kept as the newest", async () => {
    const entry = policies.refuse.find(({ reason }) => reason === "epsilon") as Entry;
    const store = new MemoryStore();
    const policy = Policy.parse(entry.policy, new Newest(store));
    const signed = parseCampaignSignature(entry.signature, "the signature");
    await expect(policy.accept(askedOf(entry.campaign), signed, undefined, Date.parse(entry.at))).rejects.toThrow(
      Untrusted,
    );
    expect(await store.change([{ prefix: "", most: 9 }], ([found = []]) => ({ result: found.length }))).toBe(0);
  });
});
