/** Reads campaign files in one step, for tests: all mechanisms are loaded. */

import { parseJson } from "../json.js";
import type { Design } from "../oracles/design.js";
import { buildMechanism } from "../oracles/every.js";
import { CAMPAIGN_BYTES, campaignFrom, formOf, NAME, type Campaign } from "./campaign.js";

/** Read the bytes of a campaign file (JSON). Throws FormatError, which names the field. */
export function parseCampaign(bytes: Uint8Array, designs: readonly Design[] = []): Campaign {
  return campaignOf(parseJson(bytes, CAMPAIGN_BYTES, NAME), designs);
}

/** Check the data of a campaign file. Throws FormatError, which names the field. */
export function campaignOf(file: unknown, designs: readonly Design[] = []): Campaign {
  return campaignFrom(formOf(file), (terms, domain) => buildMechanism(terms, domain, designs));
}
