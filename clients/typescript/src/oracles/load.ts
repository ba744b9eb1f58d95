/** Loads the module of one mechanism, and no other module. */

import { part } from "../loading.js";
import { buildFrom, familyOf, type FamilyName } from "./catalogue.js";
import { FAMILY as cells } from "./families/cells.js";
import type { Family, MechanismTerms } from "./given.js";
import type { Mechanism } from "./mechanism.js";

/** The most frequent mechanisms are small and part of the page, so no module is loaded for these mechanisms. */
const MODULES: Readonly<Record<FamilyName, () => Promise<{ readonly FAMILY: Family }> | { readonly FAMILY: Family }>> = {
  cells: () => ({ FAMILY: cells }),
  lines: () => import("./families/lines.js"),
  pools: () => import("./families/pools.js"),
  sets: () => import("./families/sets.js"),
  weighted: () => import("./families/weighted.js"),
};

/**
 * Load the module of the mechanism of this name, and return a function that builds the mechanism.
 *
 * @throws DeliveryError the module cannot be loaded now. FormatError: a file of designs is invalid.
 */
export async function loadMechanism(
  name: string,
  designs: readonly unknown[],
): Promise<(terms: MechanismTerms, domain: number | undefined) => Mechanism> {
  const { FAMILY } = await part(MODULES[familyOf(name)]());
  const known = designs.length === 0 ? [] : (await part(import("./families/weighted.js"))).parseDesigns(designs);
  return (terms, domain) => buildFrom(FAMILY, terms, domain, known);
}
