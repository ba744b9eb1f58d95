import { valueOf, type Store } from "../store/store.js";

const TOKEN_BYTES = 32;
const MOST_TOKENS = 1_000_000;

/** A client's own secrets for a campaign. */
export interface Tokens {
  /** The collector tells clients apart by it, for the cap, and stores a hash under a key of the window. */
  readonly token: string;
  /** Shown to the evaluator: with the collector's it could post in the client's name, and crowd out its reports. */
  readonly evaluatorToken: string;
}

/**
 * Return this client's tokens for a campaign, made at the first call and kept; all tabs get the same.
 *
 * Privacy: each campaign has others, so that nobody can put together what one client sent for two.
 */
export async function clientTokens(store: Store, campaign: string): Promise<Tokens> {
  const key = keyOf(campaign);
  return { token: await keptAt(store, key), evaluatorToken: await keptAt(store, `${key}/evaluator`) };
}

function keptAt(store: Store, key: string): Promise<string> {
  return store.change([key], ([found]) => {
    const kept = valueOf(found);
    if (typeof kept === "string") return { result: kept };
    const made = base64Url(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)));
    return { put: [[key, made]], result: made };
  });
}

/** Delete the tokens of all campaigns. */
export function forgetTokens(store: Store): Promise<void> {
  return store.change([{ prefix: keyOf(""), most: MOST_TOKENS, values: false }], ([keys = []]) => ({
    remove: keys.map(([key]) => key),
    result: undefined,
  }));
}

/** Return the key of what arrived under a client's token: it goes with that. */
export function arrivedKey(campaign: string): string {
  return `${keyOf(campaign)}/arrived`;
}

function keyOf(campaign: string): string {
  return `token/${campaign}`;
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
