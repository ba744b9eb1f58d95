/** Campaigns whose mixes add the noise: a report names the window in which it is due, and counts in no other one. */

import { xsalsa20poly1305, hsalsa } from "@noble/ciphers/salsa.js";
import { expect, test, vi } from "vitest";
import { blake2b, concat, hex, utf8 } from "../src/bytes.js";
import { campaignOf as parsed } from "../src/campaign/at-once.js";
import { openCampaign } from "../src/campaign/campaign.js";
import { Client } from "../src/client.js";
import { OverCap, Untrusted } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Asked } from "../src/trust/asked.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { publicKey, x25519 } from "../src/wire/x25519.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { eachBeginsAt, stubPage, tab } from "./tabs.js";
import { vectors, type Entry } from "./vectors.js";

const NOON = Date.parse("2026-11-24T12:00:00Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOISE = { epsilon: 1, delta: 1e-8, seconds: 86_400 };
const [ANALYZER, AUX] = [new Uint8Array(32).fill(11), new Uint8Array(32).fill(12)];

eachBeginsAt(NOON);

async function keyOf(secret: Uint8Array): Promise<Entry> {
  const key = await publicKey(secret);
  return { id: hex(blake2b(key, { length: 8 })), key: hex(key), not_before: "2020-01-01T00:00:00Z", not_after: "2120-01-01T00:00:00Z" };
}

/** Open a sealed box. */
async function opened(box: Uint8Array, secret: Uint8Array): Promise<Uint8Array> {
  const words = (bytes: Uint8Array): Uint32Array => new Uint32Array(Uint8Array.from(bytes).buffer);
  const key = new Uint32Array(8);
  hsalsa(words(utf8("expand 32-byte k")), words(await x25519(secret, box.subarray(0, 32))), new Uint32Array(4), key);
  const nonce = blake2b(concat(box.subarray(0, 32), await publicKey(secret)), { length: 24 });
  return xsalsa20poly1305(new Uint8Array(key.buffer), nonce).decrypt(box.subarray(32));
}

/** Open a client of the vectors' campaign, whose cap is 2. */
async function clientOf(): Promise<Client> {
  const { file } = vectors("campaigns").accept.find(({ name }) => name === "noise") as Entry;
  const keys = { analyzer: [await keyOf(ANALYZER)], aux_server: [await keyOf(AUX)], evaluator: [] };
  const campaign = utf8(JSON.stringify({ ...file, keys, shuffle: { ...file.shuffle, cap: 2 } }));
  return Client.open({ campaign, policy: Policy.trusting(), dictionary: utf8("one\ntwo\nthree\ngrößer\n") });
}

test("the auxiliary server finds the window and a box, and the analyzer in the box the item itself", async () => {
  const client = await clientOf();
  const window = (at: number): Uint8Array => new Uint8Array(new BigUint64Array([BigInt(at / 1000)]).buffer);
  for (const [due, begins] of [[NOON, NOON - DAY / 2], [NOON + 12 * HOUR, NOON + DAY / 2]] as const) {
    for (const [value, item] of [["two", 1], ["nobody's", 4]] as const) {
      const report = await client.report(value, {}, due);
      expect([report.length, report.subarray(0, 8)]).toEqual([client.sealedBytes("reports"), window(begins)]);
      const layer = await opened(report.subarray(8), AUX);
      expect(layer.subarray(16, 24)).toEqual(window(begins));
      const plain = await opened(layer.subarray(24), ANALYZER);
      expect([hex(plain.subarray(0, 16)), plain[16], plain.length]).toEqual([hex(layer.subarray(0, 16)), item, 17]);
    }
    await expect(client.report("one", {}, due), "the cap is of the window in which reports are due").rejects.toThrow(OverCap);
  }
  const spent = await client.spent();
  expect(spent.streams).toEqual([{ campaign: "vectors.noise", stream: "sealed", reports: 4, blank: 0, epsilon: 2, delta: 2e-8 }]);
  expect(spent.words()[0]).toBe("Campaign vectors.noise: this device made 4 sealed reports, not randomised, to count values, for epsilon 2 and delta 2e-8.");
  expect(spent.words()[1]).toMatch(/as long as one of the two parties that mix them keeps to its role\.$/);
});

test("windows that are shorter than the app allows are refused", async () => {
  const { file } = vectors("campaigns").accept.find(({ name }) => name === "noise") as Entry;
  await expect(openCampaign(file, 2 * DAY)).rejects.toThrow(Untrusted);
  await openCampaign(file, DAY);
  const many = { ...file, dictionary: { ...file.dictionary, items: 1e6 } };
  for (const cap of [1, 2]) {
    // Of a cap of 2, twice as many dummies are needed.
    const work = (): unknown => parsed({ ...many, shuffle: { ...file.shuffle, cap } });
    if (cap === 1) work();
    else expect(work).toThrow(/too small for a cap of 2 and 1000001 items/);
  }
});

/** A device that reports to a campaign with noise, of which each report waits for up to a delay. */
function deviceOf(delaySeconds: number, changes: Partial<Asked> = {}) {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const reading = readingOf({ streams: ["reports"], noise: NOISE, cap: 1, ...changes });
  return { collector, open: () => tab({ store, delaySeconds }, collector, reading).sender };
}

test("what is not sent in its window is given up and counted, by the next page too, and makes room for the next window", async () => {
  const { collector, open } = deviceOf(0);
  expect([await open().report("one"), await open().report("two")]).toEqual(["queued", "over_cap"]);
  collector.answer = undefined;
  expect(await open().deliver()).toMatchObject({ waiting: 1, dropped: {} });
  collector.answer = () => new Response(null, { status: 202 });
  vi.setSystemTime(NOON + DAY);
  expect(await open().report("two")).toBe("queued");
  expect(await open().deliver()).toMatchObject({ sent: 1, waiting: 0, dropped: { other_window: 1 } });
  expect(collector.arrived).toEqual(["reports two"]);
  expect((await open().spent()).epsilon).toBe(2);
});

test("a report that is due in the next window waits for it, also if the app delivers early or the page goes", async () => {
  for (const leaves of [false, true]) {
    // Of a delay of up to a day, all but a part of 1.2e-8 ends in the next window.
    vi.setSystemTime(NOON + DAY / 2 - 1);
    const page = stubPage();
    const { collector, open } = deviceOf(86_400);
    const sender = open().start();
    const leave = async (): Promise<void> => {
      page.dispatchEvent(new Event("pagehide"));
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await sender.report("one");
    if (!leaves) await leave();
    expect(await sender.deliver(true)).toMatchObject({ sent: 0, waiting: 1 });
    vi.setSystemTime(NOON + DAY / 2 + 1);
    if (leaves) await leave();
    expect(await sender.deliver(true)).toMatchObject({ sent: leaves ? 0 : 1, waiting: 0 });
    expect(collector.arrived).toEqual(["reports one"]);
    sender.close();
  }
});

test("a client that accepted a mechanism never accepts noise, nor the reverse", async () => {
  const mechanism = { id: "one", epoch: 1, head: "ab" } as Asked;
  const noisy = { ...mechanism, noise: { epsilon: 1, delta: 1e-8 } } as Asked;
  for (const [first, other] of [[mechanism, noisy], [noisy, mechanism]] as const) {
    const newest = new Newest(new MemoryStore());
    await newest.keep(first);
    const next = { epoch: 2, head: "cd", previous: "ab" };
    const restart = { serial: 9, restart: { epoch: 1, head: "ab", serial: 9 } };
    for (const signature of [{}, restart]) {
      await expect(newest.keep({ ...other, ...next }, undefined, signature as object)).rejects.toThrow(Untrusted);
    }
    await newest.keep({ ...first, ...next });
  }
  const store = new MemoryStore();
  await store.change(["newest/one"], () => ({ put: [["newest/one", { epoch: 1, head: "ab", serial: 0 }]], result: undefined }));
  await expect(new Newest(store).keep(noisy), "a head of an earlier release").rejects.toThrow(Untrusted);
});
