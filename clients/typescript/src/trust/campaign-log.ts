/** The log of a campaign: all epochs that were ever published, as a hash chain, whose newest head covers all epochs. */

import { blake2b, concat, hex, unhex } from "../bytes.js";
import { FormatError } from "../errors.js";
import { fieldsOf, HEX_32, IDENTIFIER, listOf, numberOf, textOf } from "../fields.js";
import { parseCampaignSignature, type CampaignSignature } from "./delegation.js";
import { GREATEST_EPOCH } from "./restart.js";

/** The largest number of epochs in a log: eleven years of one epoch a day. */
export const MOST_EPOCHS = 4096;
/** Longest file of a log. */
export const LOG_BYTES = 1 << 23;

/** One epoch as it was published. */
export interface LogEntry {
  readonly epoch: number;
  readonly fingerprint: string;
  readonly signature?: CampaignSignature;
}

/** All epochs of a campaign, the oldest first, and the head of the log after each epoch, in hexadecimal digits. */
export interface CampaignLog {
  readonly campaign: string;
  readonly entries: readonly LogEntry[];
  readonly heads: readonly string[];
}

/** Return the head of a log after an epoch; `previous` is the head before it, undefined before the first. */
export function headOf(previous: string | undefined, fingerprint: string): string {
  const before = previous === undefined ? new Uint8Array(32) : unhex(previous);
  return hex(blake2b(concat(before, unhex(fingerprint)), { length: 32, person: "campaign log" }));
}

/** Read a log from a file's data. Throws FormatError, which names the file and the field. */
export function parseLog(data: unknown, name: string): CampaignLog {
  const fields = fieldsOf(data, name, ["format", "campaign", "entries"]);
  numberOf(fields, "format", [1, 1], name);
  const entries = listOf(fields, "entries", MOST_EPOCHS, name).map((entry) => entryOf(entry, `${name}: entries`));
  const heads: string[] = [];
  entries.forEach(({ epoch, fingerprint }, place) => {
    const before = entries[place - 1]?.epoch ?? 0;
    if (epoch <= before) {
      throw new FormatError(`${name}: epoch ${String(epoch)} follows ${String(before)}, epochs must ascend`);
    }
    heads.push(headOf(heads[place - 1], fingerprint));
  });
  return { campaign: textOf(fields, "campaign", IDENTIFIER, name), entries, heads };
}

function entryOf(data: unknown, name: string): LogEntry {
  const fields = fieldsOf(data, name, ["epoch", "fingerprint"], ["signature"]);
  const entry = {
    epoch: numberOf(fields, "epoch", [1, GREATEST_EPOCH], name, true),
    fingerprint: textOf(fields, "fingerprint", HEX_32, name),
  };
  if (fields.signature === undefined || fields.signature === null) return entry;
  return { ...entry, signature: parseCampaignSignature(fields.signature, `${name}: signature`) };
}
