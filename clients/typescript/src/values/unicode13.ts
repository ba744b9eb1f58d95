/**
 * Unicode 13.0, whatever version the browser has: the normal form NFC, and the set of assigned characters.
 *
 * Every version of Unicode adds characters. A character that 13.0 does not assign is not changed, and separates the
 * text before it from the text after it. Text whose characters 13.0 assigns is normalised by every later version as by
 * 13.0.
 */

import { part } from "../loading.js";

/** Below this code point, Unicode 13.0 assigns every character, and each character is its own normal form. */
const FIRST_COMPOSED = 0x300;

/** Whether 13.0 assigns a code point. */
export type Assigned = (code: number) => boolean;

let loaded: Promise<Assigned> | undefined;

/**
 * Return the test for assigned code points; its table is loaded once.
 *
 * Privacy: the table is loaded for any values. If the table were requested only for some values, the request would
 * reveal that these values have other letters.
 */
export function loadAssigned(): Promise<Assigned> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

/** Return NFC of a text by the tables of 13.0; lone surrogates are not changed. */
export function nfc(text: string, assigned: Assigned): string {
  if (isPlain(text)) return text;
  let [made, piece] = ["", ""];
  for (const letter of text) {
    if (assigned(letter.codePointAt(0) ?? 0)) piece += letter;
    else {
      made += piece.normalize("NFC") + letter;
      piece = "";
    }
  }
  return made + piece.normalize("NFC");
}

/** Return the inner part of a regular expression's character class for the code points in a table of steps. */
export function classOf(steps: string): string {
  const edges = edgesOf(steps);
  return edges.map((edge, place) => (place % 2 === 0 ? "" : "-") + String.fromCodePoint(edge - (place % 2))).join("");
}

function edgesOf(steps: string): number[] {
  let edge = 0;
  let step = 0;
  const edges: number[] = [];
  for (let place = 0; place < steps.length; place += 1) {
    const digit = steps.charCodeAt(place) - 48;
    step = 32 * step + (digit & 31);
    if (digit > 31) continue;
    edges.push((edge += step));
    step = 0;
  }
  return edges;
}

function isPlain(text: string): boolean {
  for (let place = 0; place < text.length; place += 1) if (text.charCodeAt(place) >= FIRST_COMPOSED) return false;
  return true;
}

async function load(): Promise<Assigned> {
  const { STEPS } = await part(import("./unassigned.js"));
  const edges = edgesOf(STEPS);
  return (code) => {
    let [low, high] = [0, edges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((edges[middle] ?? 0) > code) high = middle;
      else low = middle + 1;
    }
    return low % 2 === 0;
  };
}
