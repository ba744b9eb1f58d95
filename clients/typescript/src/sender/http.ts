/** Requests to a collector: no credentials, no referrer, no redirects, a bounded time and a bounded answer. */

import { DeliveryError, UsageError } from "../errors.js";
import { own } from "../own.js";

const LONGEST_REQUEST = 30_000;
/** Longest body of a refusal that is read, because problem details are short. */
export const PROBLEM_BYTES = 1 << 14;

/**
 * A request; with `keepalive` it continues after the page has closed. Browsers allow at most 64 KiB for the bodies of
 * all such requests together.
 */
export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly keepalive?: boolean;
  /** Greatest length of the answer. By default, and for refusals, at most 16 KiB are read. */
  readonly mostBytes?: number;
}

/** An answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The media type in lower case, without parameters. */
  readonly media: string | undefined;
  readonly body: Uint8Array;
}

/** The browser's `fetch`, or a test's replacement. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Send a request and read its answer. Throws DeliveryError if no answer comes, or if an answer 200 is incomplete. */
export async function send(fetcher: Fetch, given: Request): Promise<Answer> {
  const request = own(given);
  let response: Response;
  try {
    response = await fetcher(request.url, own({
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
    }));
  } catch {
    // The browser gives no details, so that a page learns nothing about other sites.
    throw new DeliveryError("the collector did not answer: the device is offline, or the collector refuses this origin");
  }
  const { status, headers } = response;
  const media = (headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  return { status, headers, media, body: await bodyOf(response, request.mostBytes) };
}

/**
 * Return the body. If the body is too long or breaks off, throw for status 200; for another status return an empty
 * body, because the status is enough.
 */
async function bodyOf({ status, headers, body }: Response, mostBytes: number | undefined): Promise<Uint8Array> {
  const none = new Uint8Array();
  if (body === null) return none;
  const isWanted = status === 200 && mostBytes !== undefined;
  const most = isWanted ? mostBytes : PROBLEM_BYTES;
  const isLonger = Number(headers.get("content-length")) > most;
  // With a Content-Length, a body that is too long is not fetched.
  if (isLonger) await body.cancel();
  const reading = isLonger ? undefined : readBounded(body, most);
  if (!isWanted) return (await reading?.catch(() => none)) ?? none;
  const found = await reading;
  if (found !== undefined) return found;
  throw new DeliveryError(`the collector's answer has more than ${String(most)} bytes, must have at most that many`);
}

/**
 * Return the bytes of a stream; undefined if there are more than `most` bytes. Throws DeliveryError if the stream
 * breaks.
 */
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
    throw new DeliveryError("the collector's answer broke off: the sender asks again");
  }
  const whole = new Uint8Array(length);
  let place = 0;
  for (const piece of pieces) {
    whole.set(piece, place);
    place += piece.length;
  }
  return whole;
}

/**
 * Return an address without its final slash. Throws UsageError unless the address is https, or http on this machine.
 */
export function addressOf(site: string, name = "site"): string {
  const url = URL.canParse(site) ? new URL(site) : undefined;
  const isLocal = url?.protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  const extra = `${url?.username ?? ""}${url?.password ?? ""}${url?.search ?? ""}${url?.hash ?? ""}`;
  if (url === undefined || !(url.protocol === "https:" || isLocal) || extra !== "") {
    throw new UsageError(`${name} must be an address such as https://collector.example.com, without user name, ? or #`);
  }
  return url.href.replace(/\/+$/, "");
}
