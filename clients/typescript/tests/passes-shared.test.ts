/** Passes and other pages: what tabs, closing pages, opt-outs and pages without a campaign file do with them. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { blake2b, hex, unhex } from "../src/bytes.js";
import { Untrusted } from "../src/errors.js";
import { askingSecond } from "../src/passes/asking.js";
import { reading } from "../src/sender/reading.js";
import type { Sender } from "../src/sender/sender.js";
import { clientTokens } from "../src/sender/token.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { PassTerms } from "../src/trust/asked.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { bytes, newKeys, power } from "./signing.js";
import { dump, eachBeginsAt, stubPage, tab } from "./tabs.js";
import { vectors } from "./vectors.js";

const DAY = 86_400_000;
const NOON = Date.UTC(2026, 10, 28, 12);

/** Two parties of two days. */
const KEYS = newKeys(4);

/** An issuer on a port: it counts requests, and can be told to end a connection after it signed. */
class Issuer {
  readonly bodies: string[] = [];
  signed = 0;
  breaks = false;
  readonly #server: Server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "", "http://issuer");
    const keys = KEYS.slice(searchParams.get("day") === "20261128" ? 0 : this.parties).slice(0, this.parties);
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      response.setHeader("Content-Type", "application/octet-stream");
      if (request.method === "GET") {
        response.end(Buffer.concat(keys.map(({ n }) => bytes(n))));
        return;
      }
      const body = Buffer.concat(pieces);
      this.bodies.push(`${searchParams.get("day") ?? ""} ${body.toString("hex")}`);
      const answers = keys.map(({ n, d }, place) => {
        const blinded = BigInt(`0x${body.subarray(259 * place + 3, 259 * (place + 1)).toString("hex")}`);
        return bytes(power(blinded, d, n));
      });
      this.signed += 1;
      if (this.breaks) response.destroy();
      else response.end(Buffer.concat(answers));
    });
  });

  constructor(readonly parties: number) {}

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function termsOf(parties: number): PassTerms {
  const days = [0, 1].map((day) => {
    const keys = KEYS.slice(day * parties, (day + 1) * parties).map(({ n }) => bytes(n).toString("hex"));
    return hex(blake2b(unhex(keys.join("")), { length: 32, person: "pass keys" }));
  });
  return { seconds: 86_400, first: "2026-11-28", days };
}

let issuer: Issuer;
let address: string;
let collector: FakeCollector;
let store: MemoryStore;

eachBeginsAt(NOON);

beforeEach(async () => {
  issuer = new Issuer(1);
  address = await issuer.open();
  [collector, store] = [new FakeCollector(), new MemoryStore()];
});

afterEach(() => {
  issuer.close();
});

/** A tab whose requests to the issuer go over HTTP, and those to the collector to memory. */
function opened(options: Parameters<typeof tab>[0] = {}, reading = readingOf({ passes: termsOf(1) })): Sender {
  const fetcher = (url: string, init: RequestInit): Promise<Response> =>
    url.startsWith(address) ? fetch(url, init) : collector.fetch(url, init);
  const given = { address, authorization: (): string => "Bearer account" };
  return tab({ store, fetch: fetcher, strict: true, issuer: given, ...options }, collector, reading).sender;
}

function shown(): readonly (string | null)[] {
  return collector.posts.map(({ init }) => new Headers(init.headers).get("authorization"));
}

test("a page that goes between the issuer's signing and storing costs no second set of passes", async () => {
  issuer.breaks = true;
  const first = opened();
  await first.report("one");
  expect(await first.deliver(true)).toMatchObject({ sent: 0, waiting: 2, noPass: true });
  expect(first.log.filter(({ what }) => what === "no_pass").map(({ reason }) => reason)).toEqual(["no_answer"]);
  issuer.breaks = false;
  vi.setSystemTime(NOON + 10_000);
  expect(await opened().deliver(true)).toMatchObject({ sent: 2, waiting: 0, noPass: false });
  const asked = issuer.bodies.filter((body) => body.startsWith("20261128"));
  expect([asked.length, new Set(asked).size]).toEqual([2, 1]);
});

test("two tabs that ask at once show one pass", async () => {
  const tabs = [opened(), opened()];
  for (const sender of tabs) await sender.report("one");
  await Promise.all(tabs.map((sender) => sender.deliver(true)));
  await tabs[0]?.deliver(true);
  expect(new Set(issuer.bodies.filter((body) => body.startsWith("20261128"))).size).toBe(1);
  expect(shown().length).toBeGreaterThanOrEqual(2);
  expect(new Set(shown()).size).toBe(1);
});

test("a closing page shows its pass, and sends nothing without one", async () => {
  const page = stubPage();
  const sender = opened({ delaySeconds: 3600 });
  sender.start();
  await sender.report("one");
  page.dispatchEvent(new Event("pagehide"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(collector.posts).toEqual([]);
  await sender.deliver();
  await sender.report("two");
  page.dispatchEvent(new Event("pagehide"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(collector.posts.length).toBeGreaterThan(0);
  expect(collector.posts.every(({ init, token }) => init.keepalive === true && token === "")).toBe(true);
  expect(shown().every((header) => header?.startsWith('PrivateToken token="'))).toBe(true);
});

test("the evaluator gets a pass of its own", async () => {
  issuer.close();
  issuer = new Issuer(2);
  address = await issuer.open();
  const evaluated: (string | null)[] = [];
  const fetcher = (url: string, init: RequestInit): Promise<Response> => {
    if (url.includes("/evaluations")) evaluated.push(new Headers(init.headers).get("authorization"));
    return url.startsWith(address) ? fetch(url, init) : collector.fetch(url, init);
  };
  const reading = readingOf({ passes: termsOf(2), evaluatorKey: "00".repeat(32) });
  const sender = opened({ fetch: fetcher }, reading);
  await sender.report("one");
  await sender.deliver(true);
  await sender.deliver(true);
  expect(evaluated.length).toBe(1);
  expect(evaluated[0]?.startsWith('PrivateToken token="')).toBe(true);
  expect(new Set([...shown(), ...evaluated]).size).toBe(2);
});

test("a page that may not use the campaign file sends no report that needs a pass", async () => {
  const first = opened();
  await first.report("one");
  const refusing = { ...readingOf(), open: (): Promise<never> => Promise.reject(new Untrusted("no issuer")) };
  const second = opened({}, refusing);
  expect(await second.deliver(true)).toMatchObject({ sent: 0, waiting: 2, dropped: {} });
  expect(collector.posts).toEqual([]);
  expect(await first.deliver(true)).toMatchObject({ sent: 2 });
});

test("a report that was tried, and whose pass is gone, is given up as wrong_slot", async () => {
  const sender = opened({}, readingOf({ passes: termsOf(1), streams: ["reports"] }));
  await sender.report("one");
  collector.answer = undefined;
  await sender.deliver(true);
  await store.change([], () => ({ remove: ["token/features/passes"], result: undefined }));
  issuer.close();
  collector.answer = () => refusal(401, "unauthorised");
  vi.setSystemTime(NOON + DAY / 4);
  expect((await sender.deliver(true)).dropped).toEqual({ wrong_slot: 1 });
});

test("an opt-out while the issuer signs keeps no pass", async () => {
  const given = { address, authorization: (): Promise<string> => sender.forget().then(() => "Bearer account") };
  const sender: Sender = opened({ issuer: given });
  await sender.report("one");
  await sender.deliver(true);
  expect(await dump(store)).not.toContain("PrivateToken");
});

test("a running page asks at its second, also without a report, and not before", async () => {
  const page = stubPage();
  vi.setSystemTime(NOON - DAY / 2);
  const sender = opened();
  collector.maxAge = 86_400;
  sender.start();
  await vi.waitFor(() => expect(issuer.signed).toBe(1));
  const { secret } = await clientTokens(store, "features");
  const second = askingSecond({ blake2b }, secret, (NOON - DAY / 2) / 1000);
  for (const [moment, signed] of [[second - 1, 1], [second, 2], [86_399, 2]] as const) {
    vi.setSystemTime(NOON - DAY / 2 + 1000 * moment);
    page.dispatchEvent(new Event("pageshow"));
    if (signed === 2) await vi.waitFor(() => expect(issuer.signed).toBe(2));
    else await new Promise((resolve) => setTimeout(resolve, 50));
    expect(issuer.signed).toBe(signed);
  }
  expect([collector.posts.length, collector.gets]).toEqual([0, 2]);
});

test("an issuer without an address is refused when a sender is made", () => {
  expect(() => opened({ issuer: { address: "issuer.example.com", authorization: () => "" } })).toThrow("issuer");
});

test("a campaign of several collectors is refused without siteName, and not in each delivery", async () => {
  const file = { ...vectors("campaigns").accept[0]?.file, collectors: ["one", "two"] };
  const open = reading({ site: "https://collector.example.com", policy: Policy.trusting(), store }).open;
  await expect(open({ file, signature: undefined, log: undefined, dictionary: undefined } as never)).rejects.toThrow("siteName");
});
