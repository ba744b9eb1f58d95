/** The catalogue of frequency oracles: builds a mechanism from its name and its parameters in a campaign file. */

import { FormatError, UsageError } from "../errors.js";
import type { Design } from "./design.js";
import type { Family, MechanismTerms } from "./given.js";
import type { Mechanism } from "./mechanism.js";

const MOST_ITEMS = 2 ** 31 - 1;

/** A module with mechanisms of one kind: a page loads only its campaign's module. */
export type FamilyName = "cells" | "sets" | "pools" | "weighted" | "lines";

/** A mechanism's module, and the letters of its parameters; a question mark follows optional letters. */
type Line = readonly [family: FamilyName, letters?: string, open?: true];

const FOLDED: Line = ["cells", "B", true];
const POOL: Line = ["pools", "k m seed", true];
const CATALOGUE: Readonly<Record<string, Line>> = {
  grr: ["cells"],
  ss: ["sets", "s"],
  wss: ["weighted", "design s?"],
  sue: ["sets"],
  oue: ["sets"],
  rappor: POOL,
  "apple-cms": POOL,
  hcms: POOL,
  gcms: ["pools", "k m seed s p?", true],
  "gcms-target": ["pools", "k m seed s f", true],
  he: ["cells"],
  hr: ["cells"],
  rhr: ["cells", "b"],
  blh: FOLDED,
  olh: FOLDED,
  ocms: FOLDED,
  "ocms-mse": ["cells", "B f", true],
  "ocms-l2": FOLDED,
  "ocms-round": FOLDED,
  ais: ["cells", "s", true],
  line: ["lines", "m b"],
};

/** Return the module of a mechanism. Throws FormatError for an unknown name. */
export function familyOf(name: string): FamilyName {
  return lineOf(name)[0];
}

/**
 * Build the mechanism of a campaign.
 *
 * @param family the module of its name.
 * @param domain the number of items, "other" included; undefined in the open domain.
 * @param designs designs of the app, for `wss`.
 * @throws FormatError a parameter is missing, unknown or out of range; the message names the parameter and its range.
 */
export function buildFrom(
  family: Family,
  terms: MechanismTerms,
  domain: number | undefined,
  designs: readonly Design[],
): Mechanism {
  const { name, epsilon, parameters } = terms;
  const [, letters = "", open] = lineOf(name);
  const takes = letters === "" ? [] : letters.split(" ");
  const missing = takes.find((letter) => !letter.endsWith("?") && !Object.hasOwn(parameters, letter));
  if (missing !== undefined) throw new FormatError(`mechanism ${name} lacks the parameter ${missing}`);
  const known = takes.map((letter) => letter.replace("?", ""));
  if (Object.keys(parameters).some((letter) => !known.includes(letter))) {
    throw new FormatError(`mechanism ${name} takes only these parameters: ${known.join(", ") || "none"}`);
  }
  if (domain === undefined && open !== true) throw new FormatError(`mechanism ${name} needs a dictionary`);
  if (domain !== undefined && !(domain >= 2 && domain <= MOST_ITEMS)) {
    throw new FormatError(`domain is ${String(domain)}, must be in 2..${String(MOST_ITEMS)} items, "other" included`);
  }
  if (takes.includes("f")) requireShare(parameters.f, name === "ocms-mse");
  const build = family[name];
  if (build === undefined) throw new UsageError(`mechanism ${name} is of another family`);
  return build({ epsilon, domain, parameters, designs });
}

function lineOf(name: string): Line {
  const line = Object.hasOwn(CATALOGUE, name) ? CATALOGUE[name] : undefined;
  if (line !== undefined) return line;
  throw new FormatError(`mechanism must be one of ${Object.keys(CATALOGUE).join(", ")}`);
}

function requireShare(share: unknown, above: boolean): void {
  if (typeof share === "number" && share <= 1 && (above ? share > 0 : share >= 0)) return;
  throw new FormatError(`f must be a number in ${above ? "(0" : "[0"}, 1]`);
}
