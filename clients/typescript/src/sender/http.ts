/** Requests to a collector: no credentials, no referrer, no redirects, a bounded time and a bounded answer. */

import { DeliveryError, UsageError } from "../errors.js";

const LONGEST_REQUEST = 30_000;
/** Longest body of a refusal: problem details are short. */
export const PROBLEM_BYTES = 1 << 14;

/** A request; `keepalive` lets it outlive the page, with at most 64 KiB of all such bodies together. */
export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly keepalive?: boolean;
  /** Longest document; without it, or of a refusal beyond 16 KiB, the answer's text is not read. */
  readonly mostBytes?: number;
}

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The media type in small letters, without parameters. */
  readonly media: string | undefined;
  readonly body: Uint8Array;
}

/** The browser's `fetch`, or what a test gives in its place. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Send a request and read its answer. Throws DeliveryError if there is no answer, or a longer one. */
export async function send(fetcher: Fetch, request: Request): Promise<Answer> {
  let response: Response;
  try {
    response = await fetcher(request.url, {
      method: request.body === undefined ? "GET" : "POST",
      headers: request.headers,
      mode: "cors",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      keepalive: request.keepalive ?? false,
      signal: AbortSignal.timeout(LONGEST_REQUEST),
      ...(request.body === undefined ? {} : { body: Uint8Array.from(request.body) }),
    });
  } catch {
    // The browser says no more, so that a page learns nothing of other sites.
    throw new DeliveryError("the collector did not answer: the device is offline, or the collector refuses this origin");
  }
  const most = response.ok ? (request.mostBytes ?? 0) : PROBLEM_BYTES;
  const body = await bounded(response, most);
  // A status says it all of reports, whatever text a proxy adds.
  if (body === undefined && response.ok && request.mostBytes !== undefined) {
    throw new DeliveryError(`the collector's answer has more than ${String(most)} bytes, must have at most so many`);
  }
  const { status, headers } = response;
  const media = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  return { status, headers, media, body: body ?? new Uint8Array() };
}

/** Return the body of at most that many bytes, or undefined if it is longer; the rest is not fetched. */
async function bounded(response: Response, most: number): Promise<Uint8Array | undefined> {
  if (response.body === null) return new Uint8Array();
  if (Number(response.headers.get("content-length")) > most) {
    await response.body.cancel();
    return undefined;
  }
  return readBounded(response.body, most);
}

/** Return the bytes of a stream, or undefined if they are more than that many. Throws DeliveryError if it breaks. */
export async function readBounded(
  stream: ReadableStream<Uint8Array>,
  most: number,
): Promise<Uint8Array | undefined> {
  const reader = stream.getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > most) {
        await reader.cancel();
        return undefined;
      }
      pieces.push(value);
    }
  } catch {
    throw new DeliveryError("the collector's answer broke off: it is asked again later");
  }
  const whole = new Uint8Array(length);
  let place = 0;
  for (const piece of pieces) {
    whole.set(piece, place);
    place += piece.length;
  }
  return whole;
}

/** Return an address without a last slash. Throws UsageError unless it is https, or http on this machine. */
export function addressOf(site: string, name = "site"): string {
  const url = URL.canParse(site) ? new URL(site) : undefined;
  const isLocal = url?.protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  const extra = `${url?.username ?? ""}${url?.password ?? ""}${url?.search ?? ""}${url?.hash ?? ""}`;
  if (url === undefined || !(url.protocol === "https:" || isLocal) || extra !== "") {
    throw new UsageError(`${name} must be an address such as https://collector.example.com, without name, ? or #`);
  }
  return url.href.replace(/\/+$/, "");
}
