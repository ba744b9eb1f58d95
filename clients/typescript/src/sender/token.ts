import { freshBytes } from "../maths/words.js";
import { valueOf, type Entry, type Store } from "../store/store.js";

const TOKEN_BYTES = 32;
const MOST_TOKENS = 1_000_000;

/** A client's own secrets for a campaign. */
export interface Tokens {
  /**
   * The collector uses this token to tell clients apart for the cap, and stores the token's hash under a key of the
   * window.
   */
  readonly token: string;
  /**
   * A second token, for the evaluator. If the evaluator got the collector's token, it could post in the client's name
   * and use up the client's cap.
   */
  readonly evaluatorToken: string;
}

/**
 * Return this client's tokens for a campaign; the first call makes the tokens, and all tabs get the same tokens.
 *
 * Privacy: each campaign has its own tokens, so that nobody can link one client's reports of two campaigns.
 */
export function clientTokens(store: Store, campaign: string): Promise<Tokens> {
  const keys = [keyOf(campaign), `${keyOf(campaign)}/evaluator`];
  return store.change(keys, (found) => {
    const put: Entry[] = [];
    const [token = "", evaluatorToken = ""] = keys.map((key, place) => {
      const kept = valueOf(found[place]);
      if (typeof kept === "string") return kept;
      const made = base64Url(freshBytes(TOKEN_BYTES));
      put.push([key, made]);
      return made;
    });
    return { put, result: { token, evaluatorToken } };
  });
}

/** Delete the tokens of all campaigns. */
export function forgetTokens(store: Store): Promise<void> {
  return store.change([{ prefix: keyOf(""), most: MOST_TOKENS, values: false }], ([keys = []]) => ({
    remove: keys.map(([key]) => key),
    result: undefined,
  }));
}

/** Return the store key of the arrivals under a client's token, so that arrivals and token are deleted together. */
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
