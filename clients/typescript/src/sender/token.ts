import { valueOf, type Store } from "../store/store.js";

const TOKEN_BYTES = 32;
const MOST_TOKENS = 1_000_000;

/**
 * Return this client's own secret for a campaign at its collector, made at the first call and kept; all tabs get the same.
 *
 * Privacy: the collector tells clients apart by it, for the cap, and stores a hash under a key of the window. Each
 * campaign has another token, so that nobody can put together what one client sent for two.
 */
export function clientToken(store: Store, campaign: string): Promise<string> {
  const key = keyOf(campaign);
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

function keyOf(campaign: string): string {
  return `token/${campaign}`;
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
