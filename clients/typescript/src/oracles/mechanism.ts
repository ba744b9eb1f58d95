/** The mechanism: an encoder and a responder make one packed report from one item. */

import { uniform, type Words } from "../maths/words.js";
import { own } from "../own.js";
import { pack, reportBytes } from "../wire/packing.js";
import { identity, type Encoder } from "./encoders.js";
import type { Responder } from "./responders.js";

/** A frequency oracle: public parameters only. */
export interface Mechanism {
  /** The number of items, "other" included; undefined if every fingerprint is an item. */
  readonly domain: number | undefined;
  /** The length of every report, before sealing. */
  readonly reportBytes: number;
  /** Privatise one item: epsilon-locally private, replace-one, unless the mixes add the noise. Returns the packed report. */
  report(item: bigint, words: Words): Uint8Array;
}

/** Return the mechanism of a campaign with noise: a report is the item itself, and only dummies of the mixes hide it. */
export function truthful(domain: number): Mechanism {
  const width = BigInt(domain);
  return mechanism(domain, identity(width), { width, fields: [{ bound: width, least: 0n }], respond: (item) => ({ numbers: [item] }) });
}

/** Return the mechanism of an encoder and a responder over the same cells. */
export function mechanism(domain: number | undefined, encoder: Encoder, responder: Responder): Mechanism {
  const fields = [...encoder.fields, ...responder.fields];
  const length = reportBytes(fields, own(responder).tail);
  return {
    domain,
    reportBytes: length,
    report: (item, words) => {
      const named = encoder.fields.map(({ bound, least }) => uniform(bound - least, words) + least);
      const { numbers, code } = own(responder.respond(encoder.cell(item, named), words));
      return pack(fields, [...named, ...numbers], length, code);
    },
  };
}
