/**
 * The documents of a campaign that a collector serves; of each document a copy is kept, with the time to ask for it
 * again.
 *
 * No request is conditional, because a collector could give an ETag to one client only, and recognise the client by
 * this ETag later.
 */

import { DeliveryError } from "../errors.js";
import { own } from "../own.js";
import type { Store, Value } from "../store/store.js";
import { timeOf } from "./arrivals.js";
import { send, type Fetch } from "./http.js";
import { LONGEST_WAIT, randomTime } from "./timing.js";

/**
 * The shortest time between two requests for a document, in milliseconds. With a shorter time, a collector could often
 * see when this device is in use.
 */
export const LEAST_AGE = 3_600_000;
const AGE = /(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s])/;
const MOST_DOCUMENTS = 10;

/** A document as a collector served it; a header that was missing is the empty string. */
export interface Document {
  readonly data: Uint8Array;
  readonly signature: string;
  /** The time at which the document is requested again, in milliseconds since 1970. */
  readonly refreshAt: number;
  /** Time of the answer by the collector's clock, in milliseconds since 1970, if known. */
  readonly at?: number | undefined;
}

/** Documents by name: campaign, log, dictionary. */
export type Documents = Readonly<Record<string, Document>>;

/** The collector answered, but the answer is not the document. */
export class NotServed extends DeliveryError {}

/** Return whether two answers are the same file under the same signature. */
export function isSame(one: Document, other: Document): boolean {
  return (
    one.signature === other.signature &&
    one.data.length === other.data.length &&
    one.data.every((byte, place) => byte === other.data[place])
  );
}

/**
 * Return the time to ask again: after the age that the collector named, but at least an hour and at most a day, plus a
 * random part of up to half of it.
 *
 * The random part hides the time of the last request.
 */
export function refreshAt(cacheControl: string, now: number): number {
  const named = Number(AGE.exec(cacheControl.toLowerCase())?.[1] ?? 0) * 1000;
  const age = Math.min(Math.max(named, LEAST_AGE), LONGEST_WAIT);
  return now + age + randomTime(age / 2);
}

/**
 * Fetch a document of at most `mostBytes`.
 *
 * The request contains no client token, and nothing that a collector gave to this client alone.
 *
 * @throws DeliveryError no complete answer came. NotServed: the answer is not the document.
 */
export async function fetchDocument(
  fetcher: Fetch,
  url: string,
  mostBytes: number,
  now: number,
): Promise<Document> {
  const answer = await send(fetcher, { url, headers: {}, mostBytes });
  const header = (name: string): string => answer.headers.get(name) ?? "";
  if (answer.status !== 200) {
    throw new NotServed(`the collector answered ${String(answer.status)} to a request for a campaign document`);
  }
  return {
    data: answer.body,
    signature: header("campaign-signature"),
    refreshAt: refreshAt(header("cache-control"), now),
    at: timeOf(answer.headers),
  };
}

/** Return the kept documents of a campaign, by name. */
export function keptDocuments(store: Store, campaign: string): Promise<Documents> {
  const prefix = prefixOf(campaign);
  return store.change([{ prefix, most: MOST_DOCUMENTS }], ([found = []]) => ({
    result: own(Object.fromEntries(found.map(([key, value]) => [key.slice(prefix.length), value as unknown as Document]))),
  }));
}

/** Keep these documents instead of all kept documents of a campaign. */
export function keepDocuments(store: Store, campaign: string, documents: Documents): Promise<void> {
  const prefix = prefixOf(campaign);
  return store.change([{ prefix, most: MOST_DOCUMENTS, values: false }], ([found = []]) => ({
    remove: found.map(([key]) => key),
    put: Object.entries(documents).map(([name, document]) => [prefix + name, document as unknown as Value] as const),
    result: undefined,
  }));
}

/** Keep an unchanged campaign file, with a new time to ask for it again. */
export function keepUnchanged(store: Store, campaign: string, document: Document): Promise<void> {
  const put = [[`${prefixOf(campaign)}campaign`, document as unknown as Value] as const];
  return store.change([], () => ({ put, result: undefined }));
}

function prefixOf(campaign: string): string {
  return `document/${campaign}/`;
}
