/**
 * Evaluations by RFC 9497, mode VOPRF, ristretto255-SHA512. Only a page with an oblivious campaign loads this module.
 *
 * The evaluator sees blinded elements, which are uniform for every value. The evaluator's proof shows that it used the
 * campaign's key, so it cannot use a special key for one client.
 */

import { ristretto255, ristretto255_oprf } from "@noble/curves/ed25519.js";
import { concatBytes } from "@noble/curves/utils.js";
import type { blake2b } from "../bytes.js";
import { FormatError, Unanswered } from "../errors.js";
import type { Name } from "./report.js";

export const ELEMENT_BYTES = 32;
export const PROOF_BYTES = 64;
const INPUT_BYTES = 32;
const HASH_BYTES = 32;
const NOTHING = new Uint8Array();
const { voprf } = ristretto255_oprf;

/** Return `count` random bytes, a multiple of 8. */
export type Random = (count: number) => Uint8Array;

/** One request for several inputs of the function, and the step from the answer to their outputs. */
export interface Evaluations {
  /** 32 bytes for each input. */
  readonly blinded: Uint8Array;
  /**
   * Return the output of each input, 64 bytes.
   *
   * @param answer an evaluated element of 32 bytes for each input, then the proof of 64 bytes.
   * @throws Unanswered the answer's length, an element or the proof is wrong.
   */
  finish(answer: Uint8Array, publicKey: Uint8Array): readonly Uint8Array[];
}

/** A discovery report that waits for the evaluator's answer. */
export interface PendingDiscovery {
  /** A sealed blank, which is sent instead of the report if no answer comes. */
  readonly blank: Uint8Array;
  /** The blinded element for the evaluator: 32 bytes, which are uniform for every value. */
  readonly evaluation: Uint8Array;
  /** Return the sealed report. Throws Unanswered if the answer's length, element or proof is wrong. */
  finish(answer: Uint8Array): Promise<Uint8Array>;
}

/** Blind inputs of the function; for undefined, a random input is used. */
export function evaluationsOf(inputs: readonly (Uint8Array | undefined)[], random: Random): Evaluations {
  const asked = inputs.map((given) => {
    const input = given ?? random(INPUT_BYTES);
    return { input, ...voprf.blind(input, (count = 0) => random(count)) };
  });
  return {
    blinded: concatBytes(...asked.map(({ blinded }) => blinded)),
    finish: (answer, publicKey) => {
      const place = ELEMENT_BYTES * asked.length;
      const must = place + PROOF_BYTES;
      if (answer.length !== must) {
        throw new Unanswered(`the evaluator's answer has ${String(answer.length)} bytes, must have ${String(must)}`);
      }
      const elementOf = (row: number): Uint8Array => answer.subarray(ELEMENT_BYTES * row, ELEMENT_BYTES * (row + 1));
      const items = asked.map((one, row) => ({ ...one, evaluated: elementOf(row) }));
      try {
        return voprf.finalizeBatch(items, publicKey, answer.subarray(place));
      } catch {
        throw new Unanswered("the evaluator's answer is wrong: it was not made with the key of the campaign");
      }
    },
  };
}

/** Return a value's name from the output of the function. */
export function nameOf(output: Uint8Array, hash: typeof blake2b): Name {
  const hashed = (person: string): Uint8Array => hash(NOTHING, { length: HASH_BYTES, person, key: output });
  return { hash: hashed("bin hash"), boxKey: hashed("box key") };
}

/**
 * The maker of a campaign's reports. The maker is passed in and not imported, because a module that two files share
 * would become a third file.
 */
export interface Reports {
  readonly campaign: { binding(stream: "discovery"): Uint8Array };
  /** Return the text to discover in a value. */
  toldOf(value: string | null): Promise<string | undefined>;
  /** Return a sealed report with a value and its name; null as the value, without a name, gives a blank. */
  discoveryReport(value: string | null, name?: Name): Promise<Uint8Array>;
  octets(count: number): Uint8Array;
}

/** Begins a discovery report. A report with nothing to discover needs an evaluation too, of a random input. */
export type Oblivious = (reports: Reports, value: string | null) => Promise<PendingDiscovery>;

/** Return the function that begins reports, for an evaluator's key. Throws FormatError if the key is no group element. */
export function obliviousOf(publicKey: Uint8Array, hash: typeof blake2b): Oblivious {
  requirePublicKey(publicKey);
  return async (reports, value) => {
    const told = await reports.toldOf(value);
    const input = told === undefined ? undefined : concatBytes(reports.campaign.binding("discovery"), new TextEncoder().encode(told));
    const evaluations = evaluationsOf([input], (count) => reports.octets(count));
    return {
      blank: await reports.discoveryReport(null),
      evaluation: evaluations.blinded,
      finish: async (answer) => {
        const [output = NOTHING] = evaluations.finish(answer, publicKey);
        // A report without a value is sealed again too, so that neither the time nor the store reveals whether there is
        // a value.
        return reports.discoveryReport(value, nameOf(output, hash));
      },
    };
  };
}

/** Throw FormatError unless the key is an element of the group (32 bytes) other than the identity. */
function requirePublicKey(key: Uint8Array): void {
  try {
    if (ristretto255.Point.fromBytes(key).is0()) throw new Error();
  } catch {
    throw new FormatError("the evaluator's key is not a valid ristretto255 public key");
  }
}
