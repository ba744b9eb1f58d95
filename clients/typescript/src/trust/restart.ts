/**
 * The operator's statement that sets clients back to a history, whatever other history they have accepted.
 *
 * A client that accepted a forged history refuses every other history. Only a statement signed with the operator's own
 * key can correct this.
 */

import { canonicalJson } from "../canonical-json.js";
import { fieldsOf, HEX_32, IDENTIFIER, numberOf, textOf, type Fields } from "../fields.js";
import { parseSignature, type Signature } from "./signatures.js";

/** The greatest epoch that databases can store. */
export const GREATEST_EPOCH = 2 ** 31 - 1;

/** A statement that the operator signs about a campaign. Restarts and delegations share one series of serials. */
export interface Numbered {
  readonly campaign: string;
  /** Clients refuse a statement whose serial is smaller than an earlier statement's serial. */
  readonly serial: number;
  readonly signature: Signature;
  /** The bytes of the statement that the operator signs. */
  readonly signed: Uint8Array;
}

/** The epoch from which clients continue. The restart also ends every delegation with a smaller serial. */
export interface Restart extends Numbered {
  readonly epoch: number;
  readonly head: string;
}

/** Read a restart from a file's data. Throws FormatError, which names the file and the field. */
export function parseRestart(data: unknown, name: string): Restart {
  const fields = fieldsOf(data, name, ["format", "campaign", "serial", "epoch", "head", "signature"]);
  return {
    ...numberedOf(fields, name),
    epoch: numberOf(fields, "epoch", [1, GREATEST_EPOCH], name, true),
    head: textOf(fields, "head", HEX_32, name),
  };
}

/** Return the common part of the operator's statements, from the fields of a file. */
export function numberedOf(fields: Fields, name: string): Numbered {
  numberOf(fields, "format", [1, 1], name);
  const { signature, ...signed } = fields;
  return {
    campaign: textOf(fields, "campaign", IDENTIFIER, name),
    serial: numberOf(fields, "serial", [1, GREATEST_EPOCH], name, true),
    signature: parseSignature(signature, `${name}: signature`),
    signed: canonicalJson(signed),
  };
}
