/** Numbers: a client replaces a number by the name of its bin, and reports the name like any other item. */

import type { Form } from "../campaign/campaign.js";

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
  readonly FormatError: new (message: string) => Error;
}

/** Returns the name of the bin that has a number; "" if the text writes no number, so that it counts as "other". */
export type BinOf = (text: string) => string;

/** Return the bins of a campaign file. Throws FormatError: its section is wrong, or the dictionary is not the bins'. */
export function binOf(tools: Tools, { number, dictionary, mechanismTerms, discoveryTerms }: Form): BinOf {
  const { edges, unit, ...more } = { ...(number as { readonly edges?: unknown; readonly unit?: unknown } | null) };
  const isForm = typeof unit === "string" && UNIT.test(unit) && Object.keys(more).length === 0;
  if (!isForm || !isEdges(edges)) {
    throw new tools.FormatError(`number must have 1 to ${String(MOST_EDGES)} decimal edges that rise, and a unit`);
  }
  const names = namesOf(edges, unit === "" ? "" : ` ${unit}`);
  const isListed = mechanismTerms !== undefined && discoveryTerms === undefined && dictionary?.items === names.length;
  if (!isListed || dictionary.digest !== digestOf(tools, names)) {
    throw new tools.FormatError("number needs a mechanism, no discovery, and a dictionary of its bins in random order");
  }
  const values = edges.map(Number);
  return (text) => {
    if (text.length > MOST_DIGITS || !NUMBER.test(text)) return "";
    const given = Number(text);
    return names[values.filter((edge) => edge <= given).length] ?? "";
  };
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
