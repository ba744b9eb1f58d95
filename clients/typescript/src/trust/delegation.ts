/**
 * The signature of a campaign: by the operator, or by a publisher with a delegation from the operator's key.
 *
 * The publisher's key signs the files of further epochs. These files may change only the dictionary and the values that
 * are drawn or planned for this dictionary, and nothing that makes reports cost a client more.
 */

import { unhex } from "../bytes.js";
import { SignatureError } from "../errors.js";
import { fieldsOf, HEX_32, listOf, numberOf, textOf } from "../fields.js";
import { own } from "../own.js";
import type { Terms } from "./asked.js";
import { GREATEST_EPOCH, numberedOf, parseRestart, type Numbered, type Restart } from "./restart.js";
import { parseVerifyKey, signatureOf, verify, type Signature, type VerifyKey } from "./signatures.js";

const MOST_KEYS = 32;

/** Who may publish which campaign, under which terms, up to which epoch, with the operator's signature. */
export interface Delegation extends Numbered {
  readonly terms: string;
  readonly publisher: VerifyKey;
  readonly lastEpoch: number;
  /**
   * The evaluator's keys that the publisher may name. If the publisher could name its own key, it could test guesses of
   * values.
   */
  readonly evaluatorKeys: readonly unknown[];
}

/** A signature of a campaign's fingerprint; with a delegation it is the publisher's signature. */
export interface CampaignSignature extends Signature {
  readonly delegation?: Delegation;
  readonly restart?: Restart;
}

/** Return the greatest serial of the operator's statements in a signature; 0 if there is no statement. */
export function serialOf(signature: Partial<CampaignSignature>): number {
  const { delegation, restart } = own(signature);
  return Math.max(delegation?.serial ?? 0, restart?.serial ?? 0);
}

/** Read a campaign's signature from a file's data. Throws FormatError, which names the file and the field. */
export function parseCampaignSignature(data: unknown, name: string): CampaignSignature {
  const fields = fieldsOf(data, name, ["key_id", "signature"], ["delegation", "restart"]);
  const { delegation = null, restart = null } = fields;
  return {
    ...signatureOf(fields, name),
    ...(delegation === null ? {} : { delegation: parseDelegation(delegation, `${name}: delegation`) }),
    ...(restart === null ? {} : { restart: parseRestart(restart, `${name}: restart`) }),
  };
}

function parseDelegation(data: unknown, name: string): Delegation {
  const needed = ["format", "campaign", "serial", "terms", "publisher", "last_epoch", "evaluator_keys", "signature"];
  const fields = fieldsOf(data, name, needed);
  return {
    ...numberedOf(fields, name),
    terms: textOf(fields, "terms", HEX_32, name),
    publisher: parseVerifyKey(fields.publisher, `${name}: publisher`),
    lastEpoch: numberOf(fields, "last_epoch", [1, GREATEST_EPOCH], name, true),
    evaluatorKeys: listOf(fields, "evaluator_keys", MOST_KEYS, name),
  };
}

/**
 * Check a campaign's signature, and return the keys that vouch for it: the signer's, then the operator's.
 *
 * @param now milliseconds since 1970: a signature does not state when it was made, so the keys must be valid now.
 * @throws SignatureError as `verify`; or a key is not valid now; or the delegation has other terms, does not reach this epoch
 *   or has ended; or the restart is of another campaign.
 */
export async function verifyCampaign(
  keys: readonly VerifyKey[],
  campaign: Terms,
  signature: CampaignSignature,
  now: number,
): Promise<readonly VerifyKey[]> {
  const { delegation, restart } = own(signature);
  const operators: VerifyKey[] = [];
  if (delegation !== undefined) {
    operators.push(await verify(keys, delegation.signed, "delegation", delegation.signature));
    requireDelegated(campaign, delegation, restart);
  }
  if (restart !== undefined) {
    operators.push(await verify(keys, restart.signed, "restart", restart.signature));
    if (restart.campaign !== campaign.id) {
      throw new SignatureError(
        `the restart is of campaign ${restart.campaign}, must be of ${campaign.id}: ask the operator`,
      );
    }
  }
  const signers = delegation === undefined ? keys : [delegation.publisher];
  const vouching = [await verify(signers, unhex(campaign.fingerprint), "campaign", signature), ...operators];
  requireValid(vouching, now);
  return vouching;
}

/** Throw SignatureError unless all keys that vouch for a campaign are valid at this time. */
export function requireValid(keys: readonly VerifyKey[], now: number): void {
  const expired = keys.find(({ notBefore, notAfter }) => !(notBefore <= now && now < notAfter));
  if (expired === undefined) return;
  const [from, to, at] = [expired.notBefore, expired.notAfter, now].map((time) => new Date(time).toISOString());
  throw new SignatureError(
    `the campaign was signed with key ${expired.id}, valid from ${from} to ${to}, and it is ${at}: ` +
      "fetch the newest campaign",
  );
}

function requireDelegated({ id, epoch, terms, evaluatorKey }: Terms, delegation: Delegation, restart?: Restart): void {
  if (restart !== undefined && delegation.serial < restart.serial) {
    throw new SignatureError(
      `serial of the delegation of campaign ${id} is ${String(delegation.serial)}, but the operator's restart ended all ` +
        `below ${String(restart.serial)}: the operator must delegate anew`,
    );
  }
  if (delegation.campaign !== id || delegation.terms !== terms) {
    throw new SignatureError(
      `the publisher signed campaign ${id} with the terms ${terms}, but the operator delegated campaign ` +
        `${delegation.campaign} with the terms ${delegation.terms}: the publisher may change only the ` +
        "dictionary and what is drawn or planned for it; the operator must sign any other change",
    );
  }
  const named = evaluatorKey === undefined || delegation.evaluatorKeys.includes(evaluatorKey);
  if (epoch > delegation.lastEpoch || !named) {
    throw new SignatureError(
      `the publisher signed epoch ${String(epoch)} of campaign ${id}, must be at most ` +
        `${String(delegation.lastEpoch)}${named ? "" : " with an evaluator's key that is delegated"}: ` +
        "the operator must delegate anew",
    );
  }
}
