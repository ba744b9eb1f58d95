/** A maker whose reports are plain text, and a collector in memory, for tests of delivery. */

import type { Maker } from "../src/sender/making.js";
import type { Reading } from "../src/sender/present.js";
import type { Named } from "../src/sender/publication.js";
import type { Asked, Stream } from "../src/trust/asked.js";
import { hex, utf8 } from "../src/bytes.js";
import { FormatError, Unanswered } from "../src/errors.js";
import type { Coordinates } from "../src/values/strata.js";

/** Tokens, and a window, for posts of a test. */
export const TOKENS = {
  secret: new Uint8Array(32),
  shown: () => ({ "Client-Token": "t" }),
  has: () => undefined,
  window: 0,
  after: (moment: number) => moment + 86_400_000,
};

/** Return a campaign of that epoch, with frequency reports and discovery. */
export function campaignOf(epoch: number, changes: Partial<Asked> = {}): Asked {
  const fingerprint = hex(new Uint8Array(32).fill(epoch));
  return {
    id: "features",
    epoch,
    fingerprint,
    terms: hex(new Uint8Array(32)),
    previous: undefined,
    evaluatorKey: undefined,
    head: fingerprint,
    streams: ["reports", "discovery"],
    epsilon: 1,
    memory: false,
    memoryValues: 1,
    discovery: { epsilon: 2, delta: 1e-9 },
    cap: 1000,
    minimumBatch: 1000,
    passes: undefined,
    windows: undefined,
    noise: undefined,
    url: undefined,
    axes: undefined,
    publicStrata: 1,
    takesNumbers: false,
    shuffleDelta: 1e-8,
    collectors: ["one"],
    sample: undefined,
    sealedBytes: () => 64,
    ...changes,
  };
}

/** Return a reading of campaign files that hold nothing but their epoch, `{"epoch": 1}`. */
export function readingOf(changes: Partial<Asked> = {}): Reading {
  const read = (file: unknown): Asked => {
    const { epoch } = file as { readonly epoch: unknown };
    if (typeof epoch !== "number") throw new FormatError("the campaign file: epoch must be a number");
    return campaignOf(epoch, changes);
  };
  const named = (file: unknown): Named => ({ fingerprint: read(file).fingerprint, dictionary: undefined });
  return {
    mostBytes: 1 << 16,
    named,
    check: (file) => Promise.resolve().then(() => named(file)),
    open: ({ file }) => Promise.resolve(makerOf(read(file))),
  };
}

function makerOf(campaign: Asked): Maker {
  const sealed = (stream: Stream, value: string | null, by: Coordinates = {}): Promise<Uint8Array> => {
    const [made = 0] = crypto.getRandomValues(new Uint32Array(1));
    const body = new Uint8Array(64);
    const told = [value ?? "NOTHING", ...Object.entries(by).map((each) => each.join("="))].join("+");
    body.set(utf8(`${stream} ${told} ${String(made)}`));
    return Promise.resolve(body);
  };
  return {
    campaign,
    requireValid: () => undefined,
    repeats: () => Promise.resolve(false),
    report: (value, by) => sealed("reports", value, by),
    discoveryReport: (value) => sealed("discovery", value),
    pendingDiscovery: async (value) => {
      const evaluation = crypto.getRandomValues(new Uint8Array(32));
      const finish = (answer: Uint8Array): Promise<Uint8Array> => {
        // A fake answer is the evaluation and what a true evaluator says of it.
        const right = hex(answer.subarray(0, 32)) === hex(evaluation) && answer[32] === 1;
        return right ? sealed("discovery", value) : Promise.reject(new Unanswered("the evaluator's answer is wrong"));
      };
      return { blank: await sealed("discovery", null), evaluation, finish };
    },
  };
}

/** What a collector was sent. */
export interface Post {
  readonly stream: string;
  readonly fingerprint: string;
  readonly texts: readonly string[];
  readonly token: string;
  readonly init: RequestInit;
}

/** A collector in memory: `fetch` is to be given to a sender. */
export class FakeCollector {
  epoch = 1;
  maxAge = 300;
  /** What it answers to posts; undefined: it does not answer. */
  answer: (() => Response) | undefined = () => new Response(null, { status: 202 });
  online = true;
  /** By what time it refuses windows that have not begun, in milliseconds since 1970; by default it refuses none. */
  now = Infinity;
  /** The `Date` of a campaign file. */
  date = "";
  readonly posts: Post[] = [];
  gets = 0;
  /** Evaluations to the evaluator, and what it answers; undefined: nothing. */
  readonly evaluations: { readonly text: string; readonly fingerprint: string; readonly token: string; readonly at: number }[] = [];
  evaluate: ((evaluation: Uint8Array) => Response) | undefined = (evaluation) => evaluated(evaluation);
  /** Headers of the requests for documents. */
  readonly asked: Headers[] = [];

  readonly fetch = (url: string, init: RequestInit): Promise<Response> => {
    if (!this.online) return Promise.reject(new TypeError("offline"));
    const { pathname, searchParams } = new URL(url);
    if (init.method === "GET") {
      this.gets += 1;
      this.asked.push(new Headers(init.headers));
      if (!pathname.endsWith("/features")) return Promise.resolve(new Response(null, { status: 404 }));
      const etag = `"${String(this.epoch)}"`;
      const date: Record<string, string> = this.date === "" ? {} : { Date: this.date };
      const headers = { ETag: etag, "Content-Type": "application/json", "Cache-Control": `max-age=${String(this.maxAge)}`, ...date };
      return Promise.resolve(new Response(JSON.stringify({ epoch: this.epoch }), { headers }));
    }
    const body = init.body as Uint8Array;
    if (pathname.endsWith("/evaluations")) {
      const token = new Headers(init.headers).get("client-token") ?? "";
      this.evaluations.push({ text: hex(body), fingerprint: searchParams.get("fingerprint") ?? "", token, at: Date.now() });
      return this.evaluate === undefined ? Promise.reject(new TypeError("no answer")) : Promise.resolve(this.evaluate(body));
    }
    const texts = Array.from({ length: body.length / 64 }, (_, row) =>
      new TextDecoder().decode(body.subarray(64 * row, 64 * row + 64)).replaceAll("\0", ""),
    );
    const token = new Headers(init.headers).get("client-token") ?? "";
    const fingerprint = searchParams.get("fingerprint") ?? "";
    if (this.answer === undefined) return Promise.reject(new TypeError("no answer"));
    if (momentOf(searchParams.get("window")) > this.now) {
      return Promise.resolve(refusal(425, "window_not_begun", { Date: new Date(this.now).toUTCString() }));
    }
    const answer = fingerprint === campaignOf(this.epoch).fingerprint ? this.answer() : refusal(409, "epoch_closed");
    if (answer.status === 202) {
      this.posts.push({ stream: pathname.split("/").at(-1) ?? "", fingerprint, texts, token, init });
    }
    return Promise.resolve(answer);
  };

  /** All reports that arrived, without their number, sorted. */
  get arrived(): readonly string[] {
    return this.posts.flatMap(({ texts }) => texts.map((text) => text.replace(/ \d+$/, ""))).sort();
  }
}

/** Return a time of a query, as 20261121T000000Z, in milliseconds since 1970. */
export function momentOf(name: string | null): number {
  return Date.parse((name ?? "").replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
}

/** Return an evaluator's answer, right or wrong. */
export function evaluated(evaluation: Uint8Array, right = true): Response {
  const body = new Uint8Array(96);
  body.set(evaluation);
  body[32] = right ? 1 : 0;
  return new Response(body, { headers: { "Content-Type": "application/octet-stream" } });
}

/** Return a collector's refusal. */
export function refusal(status: number, name: string, headers: Record<string, string> = {}): Response {
  const body = JSON.stringify({ type: `urn:hushcount:problem:${name}`, title: name, status, detail: name });
  return new Response(body, { status, headers: { "Content-Type": "application/problem+json", ...headers } });
}
