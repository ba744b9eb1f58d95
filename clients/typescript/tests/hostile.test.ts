/** A collector that serves what it likes: a sender uses no campaign file that its policy refuses, and goes on with the one before. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startsOf } from "../src/budget/starts.js";
import { batches, type Queued } from "../src/sender/queue.js";
import { Arrivals } from "../src/sender/arrivals.js";
import { TOKENS } from "./fake-maker.js";
import { Leaving } from "../src/sender/leaving.js";
import { Sender } from "../src/sender/sender.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { vectors, type Entry } from "./vectors.js";

const entry = vectors("policies").accept.find(({ campaign, signature }) => campaign === "large-integer" && signature) as Entry;
const file = vectors("campaigns").accept.find(({ name }) => name === "large-integer")?.file as Entry;
const NOW = Date.parse(entry.at);
const open: Sender[] = [];

/** What a collector answers to a request for the campaign file. */
interface Served {
  readonly body: string | ReadableStream;
  readonly type?: string;
  readonly signature?: string;
}

function signatureHeader(signature: unknown): string {
  return `:${Buffer.from(JSON.stringify(signature)).toString("base64")}:`;
}

const GOOD: Served = { body: JSON.stringify(file), signature: signatureHeader(entry.signature) };

interface SetUp {
  readonly sender: Sender;
  readonly serve: (served: Served) => void;
  readonly posts: () => number;
  /** Which documents were asked for. */
  readonly asked: Set<string>;
}

function setUp(first: Served): SetUp {
  let [served, posts] = [first, 0];
  const asked = new Set<string>();
  const fetcher = (url: string, init: RequestInit): Promise<Response> => {
    if (init.method === "POST") {
      posts += 1;
      return Promise.resolve(new Response(null, { status: 202 }));
    }
    asked.add(new URL(url).pathname.split("/")[4] ?? "campaign");
    if (!url.endsWith(`/campaigns/${file.id}`)) return Promise.resolve(new Response(null, { status: 404 }));
    const { body, type = "application/json", signature } = served;
    const headers = { "Content-Type": type, ...(signature === undefined ? {} : { "Campaign-Signature": signature }) };
    return Promise.resolve(new Response(body, { headers }));
  };
  const store = new MemoryStore();
  const policy = Policy.parse(entry.policy, new Newest(store));
  const sender = new Sender({ site: "https://collector.example.com", policy, store, delaySeconds: 0, fetch: fetcher });
  open.push(sender);
  return { sender, posts: () => posts, serve: (next) => (served = next), asked };
}

function endless(): ReadableStream {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1 << 16).fill(0x20)) });
}

const HOSTILE: readonly (readonly [string, () => Served])[] = [
  ["unsigned", () => ({ body: GOOD.body })],
  ["with more epsilon than was signed", () => ({ ...GOOD, body: JSON.stringify({ ...file, mechanism: { ...file.mechanism, epsilon: 40 } }) })],
  ["of another campaign", () => ({ ...GOOD, body: JSON.stringify({ ...file, id: "another" }) })],
  ["with a field more", () => ({ ...GOOD, body: JSON.stringify({ ...file, more: 1 }) })],
  ["with __proto__", () => ({ ...GOOD, body: GOOD.body.toString().replace("{", '{"__proto__": {"memory": true},') })],
  ["nested deeply", () => ({ ...GOOD, body: "[".repeat(500_000) })],
  ["without end", () => ({ ...GOOD, body: endless() })],
  ["that is no UTF-8", () => ({ ...GOOD, body: new Blob([new Uint8Array([0xff, 0xfe])]).stream() })],
  ["of nothing", () => ({ ...GOOD, body: "null" })],
  ["in TOML", () => ({ ...GOOD, body: `format = 2\nid = "${file.id}"\n`, type: "application/toml" })],
  ["with a signature that is no byte sequence", () => ({ ...GOOD, signature: "?1" })],
  ["with a long signature", () => ({ ...GOOD, signature: `:${"A".repeat(8000)}:` })],
  ["with a nested signature", () => ({ ...GOOD, signature: `:${Buffer.from("[".repeat(3000)).toString("base64")}:` })],
];

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
});

afterEach(() => {
  for (const sender of open.splice(0)) sender.close();
  vi.useRealTimers();
});

describe("a campaign file", () => {
  test("that the policy accepts is used", async () => {
    const { sender, posts } = setUp(GOOD);
    await sender.report("dark-mode");
    expect((await sender.deliver()).waiting).toBe(0);
    expect(posts()).toBeGreaterThan(0);
  });

  test.each(HOSTILE)("%s is refused before anything is charged or sent", async (_, make) => {
    const { sender, posts, asked } = setUp(make());
    expect(["untrusted", "not_yet"]).toContain(await sender.report("dark-mode"));
    expect(posts()).toBe(0);
    // Nothing that it names is fetched, however long it may be.
    expect([...asked]).toEqual(["campaign"]);
    expect((await sender.spent()).epsilon).toBe(0);
    expect(sender.log.map(({ what }) => what)).not.toContain("fetched");
  });

  test.each(HOSTILE)("%s changes nothing for a sender that has one", async (_, make) => {
    const { sender, serve } = setUp(GOOD);
    await sender.report("one");
    await sender.deliver();
    serve(make());
    for (const later of [86_400_000, 87_000_000]) {
      vi.setSystemTime(NOW + later);
      await sender.deliver();
    }
    await sender.report("two");
    expect((await sender.spent()).streams[0]?.reports).toBe(2);
    const files = sender.log.map(({ what }) => what).filter((what) => /fetched|refused|unchanged/.test(what));
    expect(files).toEqual(["fetched", expect.stringMatching(/refused|not_fetched/)]);
  });
});

describe("a page that goes", () => {
  const queued = Array.from({ length: 100 }, (_, number): Queued => {
    const stream = number % 2 === 0 ? "reports" : "discovery";
    const waiting = { fingerprint: "f", stream, body: new Uint8Array(1000), due: NOW + 1000, cap: 100 } as const;
    return { key: String(number), waiting, at: NOW };
  });

  test("sends no more bytes than outlive it, in one request for each stream", () => {
    const requests = batches(queued, 60_000);
    expect(requests.map(({ length }) => length)).toEqual([30, 30]);
    expect(batches(queued.slice(0, 3), 500)).toEqual([]);
  });

  test("begins its requests at once, and each report leaves once", async () => {
    const bodies: number[] = [];
    const leaving = new Leaving();
    leaving.add(queued.slice(0, 4));
    leaving.remove(["0"]);
    const fetcher = (_: string, init: RequestInit): Promise<Response> => {
      expect(init.keepalive).toBe(true);
      bodies.push((init.body as Uint8Array).length);
      return Promise.resolve(new Response(null, { status: 202 }));
    };
    const target = { fetcher, base: "https://collector.example.com/v1/campaigns/c", ...TOKENS };
    const store = new MemoryStore();
    await store.change([], () => ({ put: queued.slice(0, 4).map(({ key, waiting }) => [key, { ...waiting }]), result: 0 }));
    const arrivals = new Arrivals(store, "c", () => startsOf(86_400_000));
    const sent = leaving.send(target, arrivals);
    // Nothing was awaited: a page that goes has no next task.
    expect(bodies).toEqual([2000, 1000]);
    expect(await sent).toBe(3);
    const kept = await store.change([{ prefix: "", most: 9, values: false }], ([keys = []]) => ({ result: keys.map(([key]) => key) }));
    expect(kept).toEqual(["0", "token/c/arrived"]);
    expect(await leaving.send(target, arrivals)).toBe(0);
  });
});
