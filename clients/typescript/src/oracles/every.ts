/** All mechanisms together, for tests: a page loads only its campaign's mechanism. */

import { buildFrom, familyOf, type FamilyName } from "./catalogue.js";
import type { Design } from "./design.js";
import { FAMILY as cells } from "./families/cells.js";
import { FAMILY as lines } from "./families/lines.js";
import { FAMILY as pools } from "./families/pools.js";
import { FAMILY as sets } from "./families/sets.js";
import { FAMILY as weighted } from "./families/weighted.js";
import type { Family, MechanismTerms } from "./given.js";
import type { Mechanism } from "./mechanism.js";

const FAMILIES: Readonly<Record<FamilyName, Family>> = { cells, lines, pools, sets, weighted };

/** Build a mechanism as `buildFrom` does, from the family of its name. */
export function buildMechanism(terms: MechanismTerms, domain: number | undefined, designs: readonly Design[]): Mechanism {
  return buildFrom(FAMILIES[familyOf(terms.name)], terms, domain, designs);
}
