/**
 * Client tokens: what a client shows to a collector or an evaluator in one window (docs/adr/0051).
 *
 * A token is derived from a secret of the campaign's queue, so no two windows and no two collectors see equal tokens of
 * one client, and nobody without the secret can link them. The secret is never sent.
 */

import { blake2b, concat, hex, unhex, utf8 } from "../bytes.js";
import { Untrusted } from "../errors.js";
import { freshBytes } from "../maths/words.js";
import { valueOf, type Store } from "../store/store.js";
import type { Terms } from "../trust/asked.js";

const SECRET_BYTES = 32;
const TOKEN = { length: 32, person: "window token" };
const MOST_TOKENS = 1_000_000;

/** Who gets the token. An evaluator that knew a token for the collector could use up the client's cap there. */
export type Role = "collector" | "evaluator";

/** The tokens of this client in its campaign. */
export interface Tokens {
  readonly secret: Uint8Array;
  /**
   * Return the header that shows a token to a party, in the window that began at a time, in milliseconds since 1970;
   * undefined: there is no pass for it.
   */
  shown(role: Role, name: string, window: number): Readonly<Record<string, string>> | undefined;
  /** Return whether there is a pass for a window; undefined: these tokens have no passes. */
  has(window: number): boolean | undefined;
  /** Time from which the issuer is to be asked, in milliseconds since 1970; undefined: these tokens have no passes. */
  readonly asks?: number;
}

/**
 * Return each text with its length, and a time.
 *
 * @param name the collector's name in the signed campaign file, or "evaluator"; never a part of an address.
 * @param begins when the window of the first attempt began, or the period of its pass, in seconds since 1970.
 */
export function slotOf(role: Role, campaign: string, name: string, begins: number): Uint8Array {
  const start = new DataView(new ArrayBuffer(8));
  start.setBigInt64(0, BigInt(begins));
  const texts = [role, campaign, name].map((text) => sized(utf8(text)));
  return concat(...texts, new Uint8Array(start.buffer));
}

/** Return the 32 bytes of a slot's token: a keyed BLAKE2b. */
export function nonceOf(secret: Uint8Array, slot: Uint8Array): Uint8Array {
  return blake2b(slot, { ...TOKEN, key: secret });
}

/** Return this client's tokens for a campaign. The first call makes the secret, and all tabs get the same secret. */
export async function clientTokens(store: Store, campaign: string): Promise<Tokens> {
  const key = keyOf(campaign);
  const secret = await store.change([key], ([found]) => {
    const kept = valueOf(found);
    if (typeof kept === "string") return { result: unhex(kept) };
    const made = freshBytes(SECRET_BYTES);
    return { put: [[key, hex(made)]], result: made };
  });
  return {
    secret,
    shown: (role, name, window) => ({
      "Client-Token": base64Url(nonceOf(secret, slotOf(role, campaign, name, Math.floor(window / 1000)))),
    }),
    has: () => undefined,
  };
}

/** Delete the secrets of all campaigns. */
export function forgetTokens(store: Store): Promise<void> {
  return store.change([{ prefix: keyOf(""), most: MOST_TOKENS, values: false }], ([keys = []]) => ({
    remove: keys.map(([key]) => key),
    result: undefined,
  }));
}

/**
 * Return the name of the collector at a site: the given one, or that of the campaign's only collector.
 *
 * @throws Untrusted the campaign has several collectors and no name is given, or it lacks the given one.
 */
export function collectorName({ id, collectors }: Pick<Terms, "id" | "collectors">, given: string | undefined): string {
  const [only = "", ...others] = collectors;
  if (given === undefined && others.length === 0) return only;
  if (given !== undefined && collectors.includes(given)) return given;
  throw new Untrusted(
    `siteName is ${given === undefined ? "missing" : JSON.stringify(given)}, must be one of the collectors of campaign ` +
      `${id}, ${collectors.join(", ")}`,
  );
}

/** Return the store key of what is known of the reports sent, so that it is deleted together with the secret. */
export function arrivedKey(campaign: string): string {
  return `${keyOf(campaign)}/arrived`;
}

/** Return the prefix of the store keys that are deleted together with the secret. */
export function keyOf(campaign: string): string {
  return `token/${campaign}`;
}

function sized(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes]);
}

/** Return bytes in base64url without padding. */
export function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
