/** The facts from which a mechanism is built. */

import { FormatError } from "../errors.js";
import { spendingThreshold } from "../maths/thresholds.js";
import type { Design } from "./design.js";
import { identity, type Encoder } from "./encoders.js";
import { mechanism, type Mechanism } from "./mechanism.js";
import { randomisedResponse, type Responder } from "./responders.js";

/** An integer above 2**53 - 1 is written as text. */
const LARGE = /^[1-9]\d{15,19}$/;

/** The section of a campaign file: a mechanism with complete parameters. */
export interface MechanismTerms {
  readonly name: string;
  readonly epsilon: number;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A mechanism's parameters; `integer` reads an integer by its letter. */
export interface Given {
  readonly epsilon: number;
  /** The number of items; undefined in the open domain. */
  readonly domain: number | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly designs: readonly Design[];
}

/** How to build the mechanisms of one module, by name. */
export type Family = Readonly<Record<string, (given: Given) => Mechanism>>;

/** Return the mechanism of an encoder and the responder over its cells. */
export function built(given: Given, encoder: Encoder, responder: (cells: bigint) => Responder): Mechanism {
  return mechanism(given.domain, encoder, responder(encoder.cells));
}

/** Return the mechanism with items as cells. */
export function overItems(given: Given, responder: (cells: bigint) => Responder): Mechanism {
  return built(given, identity(BigInt(given.domain ?? 0)), responder);
}

/** Return the responder that spends epsilon on one of its cells. */
export function spendingOne(epsilon: number): (cells: bigint) => Responder {
  return (cells) => randomisedResponse(cells, spendingThreshold(epsilon, cells, 1n));
}

/** Return the parameter with this letter. */
export function integer({ parameters }: Given, letter: string): bigint {
  const value = parameters[letter];
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && LARGE.test(value) && BigInt(value) > BigInt(Number.MAX_SAFE_INTEGER)) {
    return BigInt(value);
  }
  throw new FormatError(`${letter} must be an integer, as text of its digits only above 2**53 - 1`);
}
