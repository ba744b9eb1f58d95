/** Passes of an issuer: the bytes of the vectors, and a sender that asks, shows, waits and gives up as in Python. */

import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { blake2b, hex, unhex } from "../src/bytes.js";
import { Untrusted } from "../src/errors.js";
import { askingSecond, challengeOf, finished, pending, requirePasses, type Issuer } from "../src/passes/asking.js";
import { blinded, encoded, numberOf, unblinded } from "../src/passes/blind.js";
import { TOOLS } from "../src/passes/load.js";
import { reading } from "../src/sender/reading.js";
import type { Sender } from "../src/sender/sender.js";
import { clientTokens, nonceOf, slotOf } from "../src/sender/token.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { PassTerms } from "../src/trust/asked.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { bytes, newKeys, power } from "./signing.js";
import { eachBeginsAt, tab } from "./tabs.js";
import { vectors } from "./vectors.js";

const DAY = 86_400_000;
const NOON = Date.UTC(2026, 10, 28, 12);
const TODAY = "20261128";
const OCTETS = { "Content-Type": "application/octet-stream" };

describe("vectors", () => {
  const { accept, refuse } = vectors("passes");
  const made = async (entry: any): Promise<{ request: string; header: () => string }> => {
    const { secret, role, name, campaign, begins, modulus, answer } = entry;
    const one = await pending(TOOLS, unhex(secret), [role, name], campaign, begins, unhex(modulus));
    return { request: hex(one.request), header: () => finished(TOOLS, one, unhex(answer)) };
  };

  test.each(accept.map((entry, place) => [place, entry] as const))("pass %i", async (_, entry) => {
    const { request, header } = await made(entry);
    expect([request, header()]).toEqual([entry.request, entry.header]);
    const slot = slotOf(entry.role, entry.campaign, entry.name, entry.begins);
    expect(hex(await challengeOf(TOOLS, slot, entry.campaign))).toBe(entry.challenge_digest);
    expect(askingSecond({ blake2b }, unhex(entry.secret), entry.begins)).toBe(entry.second);
  });

  test.each(refuse.map((entry, place) => [place, entry] as const))("no signature %i", async (_, entry) => {
    const { request, header } = await made(entry);
    expect(request).toBe(entry.request);
    expect(header).toThrow("signature");
  });

  const official = ["go", "rust"].flatMap((name) =>
    JSON.parse(readFileSync(new URL(`../../../tests/hushcount/passes/rfc9578_type2_${name}.json`, import.meta.url), "utf8")),
  );
  test.each(official.map((entry: any, place: number) => [place, entry] as const))("RFC 9578 %i", async (_, entry) => {
    const modulus = numberOf(unhex(entry.pkS).slice(-261, -5));
    const token = unhex(entry.token);
    const message = await encoded(token.slice(0, 98), unhex(entry.salt));
    expect(hex(blinded(modulus, message, unhex(entry.blind)))).toBe(entry.token_request.slice(6));
    const signature = unblinded(modulus, message, unhex(entry.blind), unhex(entry.token_response));
    expect(hex(signature ?? new Uint8Array())).toBe(hex(token.slice(98)));
  });
});

test.each([
  [{ seconds: 3600, first: "2026-11-28", days: ["a".repeat(64)] }, undefined, true],
  [{ seconds: 86_400, first: "2026-11-28", days: Array(100).fill("0".repeat(64)) }, "key", true],
  [{ seconds: 3600, first: "2026-11-28", days: ["a".repeat(64)] }, "key", false],
  [{ seconds: 5000, first: "2026-11-28", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: 172_800, first: "2026-11-28", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: 3600.5, first: "2026-11-28", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: "3600", first: "2026-11-28", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: 3600, first: "2026-02-30", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28T00:00:00Z", days: ["a".repeat(64)] }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28", days: [] }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28", days: Array(101).fill("0".repeat(64)) }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28", days: ["A".repeat(64)] }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28", days: ["a".repeat(64)], more: 1 }, undefined, false],
  [{ seconds: 3600, first: "2026-11-28" }, undefined, false],
  [[], undefined, false],
  [null, undefined, false],
])("a section on passes has its form: %j", (passes, evaluatorKey, isValid) => {
  const check = (): void => requirePasses({ passes: passes as unknown as PassTerms, evaluatorKey }, Error);
  if (isValid) expect(check).not.toThrow();
  else expect(check).toThrow("passes");
});

const KEYS = newKeys(4);

/** Keys of four days from yesterday on, of one collector whose passes are good for a day. */
function passes(): PassTerms {
  const days = KEYS.map(({ n }) => hex(blake2b(bytes(n), { length: 32, person: "pass keys" })));
  return { seconds: 86_400, first: new Date(NOON - DAY).toISOString().slice(0, 10), days };
}

/** An issuer and a collector in memory; what signs here is not constant in time. */
class Places extends FakeCollector {
  readonly requests: { query: string; authorization: string | null; body: string }[] = [];
  /** What each post of reports showed, taken or not. */
  readonly tried: (string | null)[] = [];
  fault: "problem" | "lost" | "wrong keys" | "wrong signatures" | undefined;

  readonly both = (url: string, init: RequestInit): Promise<Response> => {
    const { pathname, search, searchParams } = new URL(url);
    if (!pathname.endsWith("/passes")) {
      if (init.method === "POST") this.tried.push(new Headers(init.headers).get("authorization"));
      return this.fetch(url, init);
    }
    const day = searchParams.get("day") ?? "";
    const place = (Date.parse(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`) - Date.parse(passes().first)) / DAY;
    const { n = 1n, d = 1n } = KEYS[place] ?? {};
    if (init.method === "GET") {
      const served = this.fault === "wrong keys" ? (KEYS[(place + 1) % 4]?.n ?? 1n) : n;
      return Promise.resolve(new Response(bytes(served), { headers: OCTETS }));
    }
    const body = init.body as Uint8Array;
    this.requests.push({ query: search, authorization: new Headers(init.headers).get("authorization"), body: hex(body) });
    if (this.fault === "lost") return Promise.reject(new TypeError("lost"));
    if (this.fault === "problem") return Promise.resolve(refusal(503, "rule_failing"));
    const signed = power(numberOf(body.slice(3)), d + (this.fault === "wrong signatures" ? 1n : 0n), n);
    return Promise.resolve(new Response(bytes(signed), { headers: OCTETS }));
  };

  /** The headers of all posts of reports. */
  get shown(): readonly (string | null)[] {
    return this.posts.map(({ init }) => new Headers(init.headers).get("authorization"));
  }
}

describe("a sender", () => {
  const terms = passes();
  const issuer: Issuer = { address: "https://issuer.example.com", authorization: () => "Bearer account" };

  eachBeginsAt(NOON);

  function senderOf(places: Places, store = new MemoryStore(), more: { issuer?: Issuer } = { issuer }): Sender {
    return tab({ fetch: places.both, strict: true, store, ...more }, places, readingOf({ passes: terms })).sender;
  }

  test("shows a pass whose nonce is the client token and whose signature verifies", async () => {
    const [places, store] = [new Places(), new MemoryStore()];
    const sender = senderOf(places, store);
    await sender.report("one");
    expect(await sender.deliver(true)).toMatchObject({ sent: 2, waiting: 0 });
    const [first = ""] = places.shown;
    expect(new Set(places.shown).size).toBe(1);
    expect(places.posts.every(({ token }) => token === "")).toBe(true);
    const token = Buffer.from((first ?? "").slice('PrivateToken token="'.length, -1), "base64url");
    const { secret } = await clientTokens(store, "features");
    const slot = slotOf("collector", "features", "one", Date.UTC(2026, 10, 28) / 1000);
    expect(hex(token.subarray(2, 34))).toBe(hex(nonceOf(secret, slot)));
    const { n } = KEYS[1]!;
    const recovered = power(numberOf(token.subarray(98)), 65_537n, n);
    expect(recovered & 0xffn).toBe(0xbcn);
    expect(places.requests.map(({ query, authorization }) => [query, authorization])[0]).toEqual([
      `?day=${TODAY}&collector=one`,
      "Bearer account",
    ]);
    expect(places.requests[0]?.body.length).toBe(2 * 259);
  });

  test.each(["problem", "lost", "wrong keys", "wrong signatures"] as const)("waits without a good pass: %s", async (fault) => {
    const [places, store] = [new Places(), new MemoryStore()];
    places.fault = fault;
    const sender = senderOf(places, store);
    await sender.report("one");
    expect(await sender.deliver(true)).toMatchObject({ sent: 0, waiting: 2, dropped: {} });
    expect(sender.log.some(({ what }) => what === "no_pass")).toBe(true);
    expect([places.posts.length, fault === "wrong keys" ? 0 : 1]).toEqual([0, places.requests.length]);
    places.fault = undefined;
    vi.setSystemTime(NOON + 10_000);
    // A new page repeats the same bytes.
    expect(await senderOf(places, store).deliver(true)).toMatchObject({ sent: 2, waiting: 0 });
    if (fault === "lost") expect(places.requests[1]).toEqual(places.requests[0]);
  });

  test("asks for the next day from its own second on, also without a report", async () => {
    const places = new Places();
    const senders = Array.from({ length: 12 }, () => senderOf(places));
    let before = 0;
    for (const hour of [0, 8, 16, 24]) {
      vi.setSystemTime(Date.UTC(2026, 10, 28) + hour * 3_600_000 - (hour === 24 ? 1 : 0));
      for (const sender of senders) await sender.deliver();
      const asked = places.requests.filter(({ query }) => query.includes("20261129")).length;
      expect(asked).toBeGreaterThanOrEqual(before);
      before = asked;
    }
    // All 12 are asked in one third of the day with probability 6e-6, so the test does not ask that they spread.
    expect(before).toBe(12);
    expect(places.requests.filter(({ query }) => query.includes(TODAY)).length).toBe(12);
    expect(places.posts).toEqual([]);
  });

  test("keeps the old pass of a report that was tried, and gives it up when that is refused", async () => {
    const places = new Places();
    const sender = senderOf(places);
    await sender.report("one");
    places.answer = () => refusal(503, "storage_failing");
    await sender.deliver(true);
    vi.setSystemTime(NOON + DAY);
    places.answer = () => refusal(401, "wrong_slot");
    expect((await sender.deliver(true)).dropped).toEqual({ wrong_slot: 2 });
    expect(places.tried.slice(1)).toContain(places.tried[0]);
  });

  test.each([() => "Bearer a\r\nHost: b", () => "Bearer ä", () => Promise.reject(new Error("a secret"))])(
    "does not send an authorization that is no header",
    async (authorization) => {
      const places = new Places();
      const sender = senderOf(places, new MemoryStore(), { issuer: { ...issuer, authorization } });
      await sender.report("one");
      expect(await sender.deliver(true)).toMatchObject({ sent: 0, waiting: 2 });
      expect(places.requests).toEqual([]);
      expect(JSON.stringify(sender.log)).not.toContain("secret");
    },
  );

  test("forgets its passes with its secret", async () => {
    const [places, store] = [new Places(), new MemoryStore()];
    const sender = senderOf(places, store);
    await sender.report("one");
    await sender.deliver(true);
    await sender.forget();
    const kept = await store.change([{ prefix: "token/", most: 9, values: false }], ([keys = []]) => ({ result: keys }));
    expect(kept).toEqual([]);
  });
});

test("a campaign with passes needs an issuer", async () => {
  const { accept } = vectors("campaigns");
  const file = { ...accept[0]!.file, passes: { seconds: 86_400, first: "2026-11-28", days: ["0".repeat(64)] } };
  const open = reading({ site: "https://collector.example.com", policy: Policy.trusting(), store: new MemoryStore() }).open;
  await expect(open({ file, signature: undefined, log: undefined, dictionary: undefined } as never)).rejects.toThrow(Untrusted);
});
