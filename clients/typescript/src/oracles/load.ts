/** Load what one mechanism needs, and nothing of the others. */

import { part } from "../loading.js";
import { buildFrom, familyOf, type FamilyName } from "./catalogue.js";
import { FAMILY as cells } from "./families/cells.js";
import type { Family, MechanismTerms } from "./given.js";
import type { Mechanism } from "./mechanism.js";

/** The commonest mechanisms are small: there is nothing to load for them. */
const MODULES: Readonly<Record<FamilyName, () => Promise<{ readonly FAMILY: Family }> | { readonly FAMILY: Family }>> = {
  cells: () => ({ FAMILY: cells }),
  pools: () => import("./families/pools.js"),
  sets: () => import("./families/sets.js"),
  weighted: () => import("./families/weighted.js"),
};

/**
 * Return a function that builds the mechanism of this name, once what it needs is loaded.
 *
 * @throws DeliveryError it cannot be loaded now. FormatError: a file of designs is none.
 */
export async function loadMechanism(
  name: string,
  designs: readonly unknown[],
): Promise<(terms: MechanismTerms, domain: number | undefined) => Mechanism> {
  const { FAMILY } = await part(MODULES[familyOf(name)]());
  const known = designs.length === 0 ? [] : (await part(import("./families/weighted.js"))).parseDesigns(designs);
  return (terms, domain) => buildFrom(FAMILY, terms, domain, known);
}
