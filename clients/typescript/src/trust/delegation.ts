/**
 * The signature of a campaign: the operator's, or that of a publisher to whom the operator's key delegates.
 *
 * The publisher's key makes the files of further epochs. It may change the dictionary and what follows from it, and
 * nothing that costs a client more.
 */

import { unhex } from "../bytes.js";
import { canonicalJson } from "../canonical-json.js";
import { SignatureError } from "../errors.js";
import { fieldsOf, HEX_32, IDENTIFIER, listOf, numberOf, textOf } from "../fields.js";
import { own } from "../own.js";
import type { Terms } from "./asked.js";
import { parseSignature, parseVerifyKey, signatureOf, verify, type Signature, type VerifyKey } from "./signatures.js";

const GREATEST_EPOCH = 2 ** 31 - 1;
const MOST_KEYS = 32;

/** Who may publish which campaign, under which terms, up to which epoch, with the operator's signature. */
export interface Delegation {
  readonly campaign: string;
  readonly terms: string;
  readonly publisher: VerifyKey;
  readonly lastEpoch: number;
  /** The evaluator's keys that the publisher may name: with one of its own it could test guesses. */
  readonly evaluatorKeys: readonly unknown[];
  readonly signature: Signature;
  /** The bytes that the operator signs. */
  readonly signed: Uint8Array;
}

/** A signature of a campaign's fingerprint; with a delegation it is the publisher's. */
export interface CampaignSignature extends Signature {
  readonly delegation?: Delegation;
}

/** Read a campaign's signature from a file's data. Throws FormatError, which names the file and the field. */
export function parseCampaignSignature(data: unknown, name: string): CampaignSignature {
  const fields = fieldsOf(data, name, ["key_id", "signature"], ["delegation"]);
  const signature = signatureOf(fields, name);
  if (fields.delegation === undefined || fields.delegation === null) return signature;
  return { ...signature, delegation: parseDelegation(fields.delegation, `${name}: delegation`) };
}

function parseDelegation(data: unknown, name: string): Delegation {
  const needed = ["format", "campaign", "terms", "publisher", "last_epoch", "evaluator_keys", "signature"];
  const fields = fieldsOf(data, name, needed);
  numberOf(fields, "format", [1, 1], name);
  const { signature, ...signed } = fields;
  return {
    campaign: textOf(fields, "campaign", IDENTIFIER, name),
    terms: textOf(fields, "terms", HEX_32, name),
    publisher: parseVerifyKey(fields.publisher, `${name}: publisher`),
    lastEpoch: numberOf(fields, "last_epoch", [1, GREATEST_EPOCH], name, true),
    evaluatorKeys: listOf(fields, "evaluator_keys", MOST_KEYS, name),
    signature: parseSignature(signature, `${name}: signature`),
    signed: canonicalJson(signed),
  };
}

/**
 * Check a campaign's signature, and return the keys that vouch for it: the signer's, then that of who delegated.
 *
 * @param now milliseconds since 1970: a signature does not tell when it was made, so its keys must be valid now.
 * @throws SignatureError as `verify`, a key is not valid now, or the delegation is of other terms or earlier epochs.
 */
export async function verifyCampaign(
  keys: readonly VerifyKey[],
  campaign: Terms,
  signature: CampaignSignature,
  now: number,
): Promise<readonly VerifyKey[]> {
  const { delegation } = own(signature);
  const vouching: VerifyKey[] = [];
  if (delegation !== undefined) {
    vouching.push(await verify(keys, delegation.signed, "delegation", delegation.signature));
    requireDelegated(campaign, delegation);
  }
  const signers = delegation === undefined ? keys : [delegation.publisher];
  vouching.unshift(await verify(signers, unhex(campaign.fingerprint), "campaign", signature));
  requireValid(vouching, now);
  return vouching;
}

/** Throw SignatureError unless all keys that vouch for a campaign are valid at that time. */
export function requireValid(keys: readonly VerifyKey[], now: number): void {
  const expired = keys.find(({ notBefore, notAfter }) => !(notBefore <= now && now < notAfter));
  if (expired === undefined) return;
  const [from, to, at] = [expired.notBefore, expired.notAfter, now].map((time) => new Date(time).toISOString());
  throw new SignatureError(
    `the campaign was signed with key ${expired.id}, valid from ${from} to ${to}, and it is ${at}: ` +
      "fetch the newest campaign",
  );
}

function requireDelegated({ id, epoch, terms, evaluatorKey }: Terms, delegation: Delegation): void {
  if (delegation.campaign !== id || delegation.terms !== terms) {
    throw new SignatureError(
      `the publisher signed campaign ${id} with the terms ${terms}, but the operator delegated campaign ` +
        `${delegation.campaign} with the terms ${delegation.terms}: the publisher may change the dictionary only, the ` +
        "operator must sign anything else",
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
