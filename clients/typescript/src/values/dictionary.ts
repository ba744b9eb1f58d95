/** Dictionaries: the items that a campaign knows in advance, and the step from values to items. */

import { blake2b, hex, utf8 } from "../bytes.js";
import { FormatError } from "../errors.js";
import { canonical, faultOfItem, fingerprintOf, OTHER } from "./items.js";
import { loadAssigned, type Assigned } from "./unicode13.js";

const NAME = "the dictionary";
const MOST_ITEMS = 2 ** 24;

/** Distinct items in normal spelling, each with its position. */
export type Dictionary = ReadonlyMap<string, number>;

/**
 * Read a dictionary, one item a line.
 *
 * @throws FormatError the dictionary is empty, too long or not UTF-8, or a line is no item or repeats an item. The message
 *   names the line, and does not repeat its contents.
 */
export async function parseDictionary(bytes: Uint8Array, most = MOST_ITEMS): Promise<Dictionary> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FormatError(`${NAME} is not UTF-8`);
  }
  if (text === "") throw new FormatError(`${NAME} is empty, must hold at least 1 item`);
  const assigned = await loadAssigned();
  const lines = text.replace(/^\ufeff/, "").replace(/\n$/, "").split("\n");
  if (lines.length > most) throw new FormatError(`${NAME} has more items than the ${String(most)} that it may have`);
  const items = new Map<string, number>();
  for (const [place, line] of lines.entries()) {
    const item = canonical(line.replace(/\r+$/, ""), assigned);
    const fault = items.has(item) ? "is there twice, in NFC" : faultOfItem(item, assigned);
    if (fault !== undefined) throw new FormatError(`line ${String(place + 1)} of ${NAME} ${fault}: remove it`);
    items.set(item, place);
  }
  return items;
}

/** Return the identity of a dictionary in hexadecimal digits. */
export function digestOf(dictionary: Dictionary): string {
  const lines = Array.from(dictionary.keys(), (item) => `${item}\n`);
  return hex(blake2b(utf8(lines.join("")), { length: 32 }));
}

/**
 * Return the item of a value in normal spelling; "other" if the value is outside the dictionary, or cannot be an item.
 *
 * @param positions the number of items, "other" included, if items are positions; undefined if items are fingerprints.
 */
export function itemOf(
  value: string,
  dictionary: Dictionary | undefined,
  positions: number | undefined,
  assigned: Assigned,
): bigint {
  if (dictionary !== undefined && positions !== undefined) return BigInt(dictionary.get(value) ?? dictionary.size);
  const known = dictionary?.has(value) ?? faultOfItem(value, assigned) === undefined;
  return known ? fingerprintOf(value) : OTHER;
}

/** Return the item "other". */
export function otherItem(positions: number | undefined): bigint {
  return positions === undefined ? OTHER : BigInt(positions - 1);
}
