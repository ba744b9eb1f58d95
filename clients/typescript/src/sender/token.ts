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

/** The name of every evaluator in the derivation of its tokens. */
const EVALUATOR_NAME = "evaluator";
const SECRET_BYTES = 32;
const TOKEN = { length: 32, person: "window token" };
const MOST_TOKENS = 1_000_000;

/** Who gets the token. An evaluator that knew a token for the collector could use up the client's cap there. */
export type Role = "collector" | "evaluator";

/** The tokens of this client in its campaign. */
export interface Tokens {
  /** Return the token for a collector, in the window that began at a time, in milliseconds since 1970. */
  collectorToken(name: string, window: number): string;
  /** Return the token for the evaluator in that window. */
  evaluatorToken(window: number): string;
}

/**
 * Return a keyed BLAKE2b, in base64url without padding, of each text with its length, and of the window.
 *
 * @param name the collector's name in the signed campaign file, or EVALUATOR_NAME; never a part of an address.
 * @param window when the window of the first attempt began, in seconds since 1970.
 */
export function derivedToken(secret: Uint8Array, role: Role, campaign: string, name: string, window: number): string {
  const start = new DataView(new ArrayBuffer(8));
  start.setBigInt64(0, BigInt(window));
  const texts = [role, campaign, name].map((text) => sized(utf8(text)));
  return base64Url(blake2b(concat(...texts, new Uint8Array(start.buffer)), { ...TOKEN, key: secret }));
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
  const tokenOf = (role: Role, name: string, window: number): string =>
    derivedToken(secret, role, campaign, name, Math.floor(window / 1000));
  return {
    collectorToken: (name, window) => tokenOf("collector", name, window),
    evaluatorToken: (window) => tokenOf("evaluator", EVALUATOR_NAME, window),
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

function keyOf(campaign: string): string {
  return `token/${campaign}`;
}

function sized(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes]);
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
