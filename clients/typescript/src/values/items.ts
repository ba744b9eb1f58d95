/** The strings that may be items, their normal spelling, and the numbers that stand for them. */

import { blake2b, integerOf, utf8 } from "../bytes.js";
import { UsageError } from "../errors.js";
import { IDENTIFIER } from "../fields.js";
import { own } from "../own.js";
import { PRIME_61 } from "../oracles/encoders.js";
import { DEFAULT_IGNORABLE_CODE_POINT, EXTENDED_PICTOGRAPHIC, VARIATION_BASE, VIRAMA } from "./invisible.js";
import type { Coordinates } from "./strata.js";
import { classOf, nfc, type Assigned } from "./unicode13.js";

const MOST_ITEM_BYTES = 4096;
const MOST_SPELLED_BYTES = 4 * MOST_ITEM_BYTES;
/**
 * Parts of patterns. Their escapes are those of patterns, not of strings: a bundler would write the characters, and a
 * page without a charset would read other ones.
 *
 * Invisible characters: by Unicode's property, the blank of Braille, and the marks of annotations.
 */
const UNSEEN = `${classOf(DEFAULT_IGNORABLE_CODE_POINT)}\\u2800\\ufff9-\\ufffb`;
const UNFIT: readonly (readonly [string, string])[] = [
  ["\\0-\\x1f\\x7f-\\x9f", "a control character"],
  ["\\ud800-\\udfff", "a lone surrogate"],
  ["\\u2028", "a separator of lines"],
  ["\\u2029", "a separator of paragraphs"],
  ["\\u202a-\\u202e\\u2066-\\u2069", "a control of direction"],
  [UNSEEN, "an invisible character"],
];
const SPACES = "\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SELECTORS = "\\u180b-\\u180d\\ufe00-\\ufe0d\\u{e0100}-\\u{e01ef}";
const JOINERS = "\\u180e\\u200c\\u200d";
/** The flags of England, Scotland and Wales, RGI_Emoji_Tag_Sequence. */
const FLAGS = ["gbeng", "gbsct", "gbwls"];

let forms: readonly [shown: RegExp, unfit: RegExp] | undefined;

/** The item "other" where items are fingerprints; no string has it. */
export const OTHER = PRIME_61 - 1n;

/** Return a value as text, a number as ECMAScript writes it. Throws UsageError: it is neither text nor number. */
export function textOfValue(value: unknown): string {
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new UsageError(`a value is a ${typeof value}, must be a string or a number`);
}

/** Return whether a campaign may list a coordinate on an axis: printable ASCII without , = [ ] and a space at an end. */
export function mayBeListed(axis: string, coordinate: string): boolean {
  return IDENTIFIER.test(axis) && /^(?! )[ -+\--<>-Z\\^-~]{1,64}$/.test(coordinate) && !coordinate.endsWith(" ");
}

/**
 * Return a client's coordinates as texts, those that a campaign may list. Throws UsageError: one is neither text nor
 * number, or they are no plain object.
 */
export function coordinatesOf(by: Readonly<Record<string, unknown>> | undefined): Coordinates {
  if (by !== undefined && Object.prototype.toString.call(by) !== "[object Object]") throw new UsageError("by must be a plain object");
  const texts = Object.entries(by ?? {}).map(([axis, value]) => [axis, textOfValue(value)] as const);
  return own(Object.fromEntries(texts.filter(([axis, text]) => mayBeListed(axis, text))));
}

/** Return the normal spelling of a value: NFC by Unicode 13.0. A text that is too long for an item is not changed. */
export function canonical(value: string, assigned: Assigned): string {
  return isLonger(value, MOST_SPELLED_BYTES) ? value : nfc(value, assigned);
}

/**
 * Return why a string cannot be an item, as a predicate that does not repeat the string; undefined if it can be an
 * item.
 */
export function faultOfItem(value: string, assigned: Assigned): string | undefined {
  return isLonger(value, MOST_ITEM_BYTES)
    ? `has more than ${String(MOST_ITEM_BYTES)} bytes`
    : faultOfText(value, assigned);
}

/** Return why a string cannot be an item, whatever its length; undefined if only its length may forbid it. */
export function faultOfText(value: string, assigned: Assigned): string | undefined {
  if (value === "") return "is empty";
  if (/^[ -~]+$/.test(value)) return undefined;
  if (value.charCodeAt(0) === 0xfeff) return "begins with a byte order mark";
  forms ??= makeForms();
  const found = forms[1].exec(value.replace(forms[0], (each) => String.fromCodePoint(each.codePointAt(0) ?? 0)));
  if (found !== null) {
    const form = found.findIndex((group, place) => place > 0 && group !== undefined);
    return `holds ${UNFIT[form - 1]?.[1] ?? ""}`;
  }
  return canonical(value, assigned) === value ? undefined : "is not in Unicode's normal form NFC";
}

/** Return the number that stands for a string in the open domain and in pools, in 0..2**61-3. */
export function fingerprintOf(text: string): bigint {
  return integerOf(blake2b(utf8(text), { length: 16, person: "fingerprint" })) % OTHER;
}

/**
 * Return two patterns: one of characters that are followed by invisible characters with a visible effect, and one of
 * unfit characters.
 *
 * The first follows Unicode's data: a flag's tags, the selector of a keycap or picture, the selector of a character's other
 * shape, a joiner between two visible characters beyond ASCII, and a joiner after a virama, as at the end of Kannada words.
 */
function makeForms(): readonly [shown: RegExp, unfit: RegExp] {
  const visible = `[^\\0-\\x9f\\ud800-\\udfff${SPACES}${UNSEEN}]`;
  const tagsOf = (flag: string): string =>
    String.fromCodePoint(...Array.from(flag, (letter) => 0xe0000 + letter.charCodeAt(0)));
  const picture = `[${classOf(EXTENDED_PICTOGRAPHIC)}][\\ufe0e\\ufe0f]`;
  const shaped = `[${classOf(VARIATION_BASE)}][${SELECTORS}]`;
  // The patterns use no lookbehind, which Safari supports only since 16.4.
  const shown = [
    `\\u{1f3f4}(?:${FLAGS.map(tagsOf).join("|")})\\u{e007f}`,
    "[#*0-9]\\ufe0f(?=\\u20e3)",
    `(?:${picture}|${shaped}|${visible})[${JOINERS}](?=${visible})`,
    picture,
    shaped,
    `[${classOf(VIRAMA)}][\\u200c\\u200d]`,
  ];
  return [new RegExp(shown.join("|"), "gu"), new RegExp(UNFIT.map(([letters]) => `([${letters}])`).join("|"), "u")];
}

function isLonger(value: string, most: number): boolean {
  // The bytes are counted only if this is needed: in UTF-8, a UTF-16 unit takes at most three bytes.
  return 3 * value.length > most && utf8(value).length > most;
}
