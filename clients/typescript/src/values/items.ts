/** Which strings may be items, their one spelling, and the numbers that stand for them. */

import { blake2b, integerOf, utf8 } from "../bytes.js";
import { PRIME_61 } from "../oracles/encoders.js";
import { nfc, type Assigned } from "./unicode13.js";

const MOST_ITEM_BYTES = 4096;
const MOST_SPELLED_BYTES = 4 * MOST_ITEM_BYTES;
const UNFIT: readonly (readonly [RegExp, string])[] = [
  [/^\p{Cc}/u, "a control character"],
  [/^\p{Cs}/u, "a lone surrogate"],
  [/^\p{Zl}/u, "a separator of lines"],
  [/^\p{Zp}/u, "a separator of paragraphs"],
];
const TURNS = /^[\u202a-\u202e\u2066-\u2069]/;
const BLANK = /^[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/;
const FORMAT = /^\p{Cf}/u;
const JOINERS = /^[\u200c\u200d]/;

/** The item "other" where items are fingerprints; no string has it. */
export const OTHER = PRIME_61 - 1n;

/** Return the one spelling of a value: NFC by Unicode 13.0. What is too long for an item stays as it is. */
export function canonical(value: string, assigned: Assigned): string {
  return isLonger(value, MOST_SPELLED_BYTES) ? value : nfc(value, assigned);
}

/** Return why a string may not be an item, as a predicate that does not repeat it; undefined if it may be one. */
export function faultOfItem(value: string, assigned: Assigned): string | undefined {
  return isLonger(value, MOST_ITEM_BYTES)
    ? `has more than ${String(MOST_ITEM_BYTES)} bytes`
    : faultOfText(value, assigned);
}

/** Return the same for a string of any length. */
export function faultOfText(value: string, assigned: Assigned): string | undefined {
  if (value === "") return "is empty";
  if (/^[ -~]+$/.test(value)) return undefined;
  if (value.startsWith("\ufeff")) return "begins with a byte order mark";
  const letters = Array.from(value);
  for (const [place, letter] of letters.entries()) {
    if (!assigned(letter.codePointAt(0) ?? 0)) continue;
    const unfit = UNFIT.find(([form]) => form.test(letter))?.[1];
    if (unfit !== undefined) return `holds ${unfit}`;
    if (TURNS.test(letter)) return "holds a control of direction";
    const joins = JOINERS.test(letter) && isForeign(letters[place - 1]) && isForeign(letters[place + 1]);
    if (BLANK.test(letter) || (FORMAT.test(letter) && !joins)) return "holds an invisible character";
  }
  return canonical(value, assigned) === value ? undefined : "is not in Unicode's normal form NFC";
}

/** Return the number that stands for a string in the open domain and in pools, in 0..2**61-3. */
export function fingerprintOf(text: string): bigint {
  return integerOf(blake2b(utf8(text), { length: 16, person: "fingerprint" })) % OTHER;
}

function isForeign(letter: string | undefined): boolean {
  return letter !== undefined && letter > "\x7f";
}

function isLonger(value: string, most: number): boolean {
  // No unit of UTF-16 has more than three bytes.
  return 3 * value.length > most && utf8(value).length > most;
}
