/**
 * For tests of an app or of another client: makes reports from chosen randomness. Never use this module for people's
 * values.
 */

import { parseCampaign } from "./campaign/at-once.js";
import { blake2b } from "./bytes.js";
import type { Campaign } from "./campaign/campaign.js";
import { nameOf as nameBy } from "./discovery/oblivious.js";
import type { Name } from "./discovery/report.js";
import { UsageError } from "./errors.js";
import { parseDesigns } from "./oracles/design.js";
import type { Words } from "./maths/words.js";

export { buildMechanism } from "./oracles/every.js";
export type { MechanismTerms } from "./oracles/given.js";
export type { Mechanism } from "./oracles/mechanism.js";
export type { Campaign, Words };
export { evaluationsOf, type Evaluations, type Random } from "./discovery/oblivious.js";
export { blankName, discoveryReport, keyedName, type DiscoveryFormat } from "./discovery/report.js";
export type { Name };
export { sealAlike, sealBy } from "./wire/sealing.js";

/** Return a value's name from the output of the evaluator's function. */
export function nameOf(output: Uint8Array): Name {
  return nameBy(output, blake2b);
}

/** Return a source of the words of a list, in order, each once; UsageError when the list is used up. */
export function wordsOf(list: readonly bigint[]): Words {
  let taken = 0;
  return (count) => {
    if (taken + count > list.length) throw new UsageError(`there are ${String(list.length)} words, must be more`);
    const words = list.slice(taken, taken + count);
    taken += count;
    return Uint32Array.from(words.flatMap((word) => [Number(word & 0xffffffffn), Number(word >> 32n)]));
  };
}

/** Read a campaign file without a policy. Throws FormatError. */
export function readCampaign(bytes: Uint8Array, designs: readonly unknown[] = []): Campaign {
  return parseCampaign(bytes, parseDesigns(designs));
}
