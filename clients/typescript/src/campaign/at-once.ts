/** Reads campaign files in one step, for tests: all mechanisms are loaded. */

import { FormatError, Untrusted } from "../errors.js";
import { parseJson } from "../json.js";
import type { Design } from "../oracles/design.js";
import { buildMechanism } from "../oracles/every.js";
import { requirePasses } from "../passes/asking.js";
import { itemOfNumber } from "../values/numbers.js";
import { strataOf } from "../values/strata.js";
import { itemOfUrl } from "../values/urls.js";
import { CAMPAIGN_BYTES, campaignFrom, domainOf, formOf, NAME, TOOLS, type Campaign } from "./campaign.js";
import { requireNoise } from "./noise.js";
import { requireWindows } from "./windows.js";

/** Read the bytes of a campaign file (JSON). Throws FormatError, which names the field. */
export function parseCampaign(bytes: Uint8Array, designs: readonly Design[] = []): Campaign {
  return campaignOf(parseJson(bytes, CAMPAIGN_BYTES, NAME), designs);
}

/** Check the data of a campaign file. Throws FormatError, which names the field. */
export function campaignOf(file: unknown, designs: readonly Design[] = []): Campaign {
  const form = formOf(file);
  requirePasses(form, FormatError);
  requireWindows(form, 0, FormatError, Untrusted);
  const ofNumber = form.number === undefined ? undefined : itemOfNumber(TOOLS, form);
  const ofUrl = form.url === undefined ? undefined : itemOfUrl(TOOLS, form);
  const strata = form.axes === undefined ? undefined : strataOf(TOOLS, form);
  if (form.noise !== undefined) requireNoise(form, domainOf(form, strata), strata?.publicStrata ?? 1, 0, FormatError, Untrusted);
  return campaignFrom(form, (terms, domain) => buildMechanism(terms, domain, designs), ofNumber, ofUrl, strata);
}
