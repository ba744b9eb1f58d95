/** Numbers: a client replaces a number by the name of its bin, or for a mean by one of two points beside it. */

import type { Form } from "../campaign/campaign.js";
import type { Words } from "../maths/words.js";

const MOST_EDGES = 1023;
const MOST_DIGITS = 40;
const EDGE = /^(?:0|-?(?:[1-9]\d{0,20}|[1-9]\d{0,14}\.\d{0,19}[1-9]|0\.\d{0,19}[1-9]))$/;
const UNIT = /^[!-~°µΩ€]{0,16}$/;
const NUMBER = /^-?(?:Infinity|\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/** Functions of the page that this module uses, so that no bundle has them twice. */
export interface Tools {
  readonly blake2b: (data: Uint8Array, options: { readonly length: number; readonly person?: string }) => Uint8Array;
  readonly hex: (bytes: Uint8Array) => string;
  readonly utf8: (text: string) => Uint8Array;
  readonly wordOf: (words: Words) => bigint;
  readonly FormatError: new (message: string) => Error;
}

/**
 * Returns the name of the bin that has a number, or for a mean the item of a point that is drawn. The name is "" if the
 * text writes no number, so that it counts as "other".
 */
export type ItemOfNumber = (text: string, words: Words) => string | bigint;

/** Return the items of a campaign file's numbers. Throws FormatError: its section or its dictionary is wrong. */
export function itemOfNumber(tools: Tools, { number, dictionary, mechanismTerms, discoveryTerms, noise }: Form): ItemOfNumber {
  const { edges, unit, mean, ...more } = { ...(number as Readonly<Record<string, unknown>> | null) };
  const isForm = typeof unit === "string" && UNIT.test(unit) && typeof mean === "boolean" && Object.keys(more).length === 0;
  if (!isForm || !isEdges(edges) || (mean && edges.length !== 2)) {
    throw new tools.FormatError(`number must have 1 to ${String(MOST_EDGES)} decimal edges that rise, a unit, and mean`);
  }
  const spaced = unit === "" ? "" : ` ${unit}`;
  const names = mean ? [`${edges[1] ?? ""}${spaced}`] : namesOf(edges, spaced);
  const isListed = (mechanismTerms ?? noise) !== undefined && discoveryTerms === undefined && dictionary?.items === names.length;
  if (!isListed || dictionary.digest !== digestOf(tools, names) || (mechanismTerms?.name === "line") !== mean) {
    throw new tools.FormatError("number needs its mechanism, no discovery, and a dictionary of its items in random order");
  }
  const values = edges.map(Number);
  if (!mean) {
    return (text) => {
      const given = numberOf(text);
      return given === undefined ? "" : (names[values.filter((edge) => edge <= given).length] ?? "");
    };
  }
  const [low = 0, high = 1] = values;
  const last = Number(mechanismTerms?.parameters.m) - 1;
  return (text, words) => {
    const place = ((Math.min(Math.max(numberOf(text) ?? low, low), high) - low) / (high - low)) * last;
    const below = Math.min(Math.floor(place), last - 1);
    const isAbove = Number(tools.wordOf(words) >> 11n) < (place - below) * 2 ** 53;
    return BigInt(last - below - (isAbove ? 1 : 0));
  };
}

/** Return the number that a text writes in decimal digits. */
function numberOf(text: string): number | undefined {
  return text.length > MOST_DIGITS || !NUMBER.test(text) ? undefined : Number(text);
}

function isEdges(edges: unknown): edges is readonly string[] {
  return (
    Array.isArray(edges) &&
    edges.length > 0 &&
    edges.length <= MOST_EDGES &&
    edges.every((edge) => typeof edge === "string" && EDGE.test(edge)) &&
    edges.every((edge, place) => place === 0 || Number(edges[place - 1]) < Number(edge))
  );
}

/** Return the name of each bin, the lowest first; a bin of one count has the count's name. */
function namesOf(edges: readonly string[], unit: string): readonly string[] {
  const areCounts = edges.every((edge, place) => edge === String(place + 1));
  const below = edges.map((edge, place) => {
    if (areCounts) return `${String(place)}${unit}`;
    return place === 0 ? `below ${edge}${unit}` : `${edges[place - 1] ?? ""} to ${edge}${unit}`;
  });
  return [...below, `${edges[edges.length - 1] ?? ""}${unit} or more`];
}

/** Return the digest of the dictionary that lists names in random order, by the hash of each name. */
function digestOf({ blake2b, hex, utf8 }: Tools, names: readonly string[]): string {
  const placed = names.map((name) => [hex(blake2b(utf8(name), { length: 16, person: "hushcount order" })), name] as const);
  const lines = placed.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, name]) => `${name}\n`);
  return hex(blake2b(utf8(lines.join("")), { length: 32 }));
}
