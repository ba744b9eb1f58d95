/** The sections of a campaign file. */

import { blake2b, hex, unhex } from "../bytes.js";
import { FormatError } from "../errors.js";
import { booleanOf, fieldsOf, HEX_32, KEY_ID, listOf, numberOf, textOf, timeOf } from "../fields.js";
import type { MechanismTerms } from "../oracles/given.js";
import { own } from "../own.js";

/**
 * A time as Python writes it: UTC as Z, and a fraction only if it is not 0. Only this form is accepted, because the
 * fingerprint covers the text.
 */
const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?!0{6})\d{6})?(?:Z|(?![+-]00:00)[+-]\d\d:\d\d)$/;
const FILE_NAME = /^[^/\\:.\x00-\x1f][^/\\:\x00-\x1f]{0,127}$/u;
const EPSILON = [1e-4, 40] as const;
const ROLES = ["analyzer", "aux_server", "evaluator"] as const;
const HASH_KEYS = ["hash_key", "hash_key_commitment"] as const;
/** The open interval (0, 1), as doubles. */
const INSIDE = [Number.MIN_VALUE, 1 - Number.EPSILON / 2] as const;

/** A party's public key, and when clients may seal to it, in milliseconds since 1970. */
export interface PublicKey {
  readonly key: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** The keys that clients seal to, and the evaluator's key of an oblivious campaign. */
export interface PublicKeys {
  readonly analyzer: PublicKey;
  readonly auxServer: PublicKey | undefined;
  readonly evaluator: PublicKey | undefined;
}

/** The dictionary that belongs to a campaign. */
export interface Listed {
  readonly items: number;
  readonly digest: string;
}

/** Terms of the discovery of values that the dictionary lacks. */
export interface DiscoveryTerms {
  readonly epsilon: number;
  readonly delta: number;
  readonly relation: string;
  readonly maxValueBytes: number;
  /** Whether an evaluator makes the names of values, instead of a hash key. */
  readonly isOblivious: boolean;
  /** The hash key; undefined in an oblivious campaign, and in a redacted file, with which no client can report. */
  readonly hashKey: Uint8Array | undefined;
}

export function keysOf(data: unknown, discovery: DiscoveryTerms | undefined, file: string): PublicKeys {
  const name = `${file}: keys`;
  const fields = fieldsOf(data, name, ROLES);
  const [analyzer, auxServer, evaluator] = ROLES.map((role) => {
    const listed = listOf(fields, role, 1, name);
    return listed.length === 0 ? undefined : publicKeyOf(listed[0], `${name}: ${role}`, role);
  });
  const isOblivious = discovery?.isOblivious ?? false;
  const isAsked = evaluator !== undefined;
  if (analyzer === undefined || (discovery !== undefined && auxServer === undefined) || isAsked !== isOblivious) {
    throw new FormatError(
      `${name}: each role must have one key, the auxiliary server only with discovery, the evaluator if hash is oblivious`,
    );
  }
  if (auxServer !== undefined && hex(auxServer.key) === hex(analyzer.key)) {
    throw new FormatError(`${name}: one key is of both roles, so one party could open both layers`);
  }
  return { analyzer, auxServer, evaluator };
}

function publicKeyOf(data: unknown, name: string, role: string): PublicKey {
  const fields = fieldsOf(data, name, ["id", "key", "not_before", "not_after"]);
  const key = unhex(textOf(fields, "key", HEX_32, name));
  const id = textOf(fields, "id", KEY_ID, name);
  for (const field of ["not_before", "not_after"]) textOf(fields, field, CANONICAL_TIME, name);
  const [notBefore, notAfter] = [timeOf(fields, "not_before", name), timeOf(fields, "not_after", name)];
  const named = hex(blake2b(key, { length: 8, person: role === "evaluator" ? "evaluator key" : "" }));
  if (id !== named) throw new FormatError(`${name}: id is ${id}, but the key has id ${named}`);
  if (notBefore >= notAfter) throw new FormatError(`${name}: not_after must be later than not_before`);
  return { key, notBefore, notAfter };
}

export function listedOf(data: unknown, file: string): Listed {
  const name = `${file}: dictionary`;
  const fields = fieldsOf(data, name, ["path", "items", "digest"]);
  textOf(fields, "path", FILE_NAME, name);
  return { items: numberOf(fields, "items", [1, 2 ** 24], name, true), digest: textOf(fields, "digest", HEX_32, name) };
}

export function shuffleOf(data: unknown, file: string): { cap: number; minimumBatch: number; shuffleDelta: number } {
  const name = `${file}: shuffle`;
  const fields = fieldsOf(data, name, ["cap", "minimum_batch", "delta"]);
  return {
    cap: numberOf(fields, "cap", [1, 1000], name, true),
    minimumBatch: numberOf(fields, "minimum_batch", [1, 1e12], name, true),
    shuffleDelta: numberOf(fields, "delta", INSIDE, name),
  };
}

export function discoveryOf(data: unknown, file: string): DiscoveryTerms {
  const name = `${file}: discovery`;
  const needed = ["epsilon", "delta", "relation", "rule", "max_value_bytes", "hash", "counts"];
  const fields = fieldsOf(data, name, needed, HASH_KEYS);
  const given = HASH_KEYS.filter((field) => field in fields);
  for (const field of given) textOf(fields, field, HEX_32, name);
  const isOblivious = textOf(fields, "hash", /^(?:keyed|oblivious)$/, name) === "oblivious";
  if (given.length !== (isOblivious ? 0 : 1)) {
    throw new FormatError(`${name}: exactly one of hash_key and hash_key_commitment must be there, none if hash is oblivious`);
  }
  textOf(fields, "rule", booleanOf(fields, "counts", name) ? /^optimal$/ : /^(?:optimal|laplace)$/, name);
  return {
    epsilon: numberOf(fields, "epsilon", EPSILON, name),
    delta: numberOf(fields, "delta", INSIDE, name),
    relation: textOf(fields, "relation", /^(?:replace-one|add-remove)$/, name),
    maxValueBytes: numberOf(fields, "max_value_bytes", [1, 4096], name, true),
    isOblivious,
    hashKey: "hash_key" in fields ? unhex(textOf(fields, "hash_key", HEX_32, name)) : undefined,
  };
}

export function mechanismTermsOf(data: unknown, file: string): MechanismTerms {
  const name = `${file}: mechanism`;
  const fields = fieldsOf(data, name, ["name", "epsilon", "parameters"]);
  const parameters = fields.parameters;
  if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters)) {
    throw new FormatError(`${name}: parameters must be an object`);
  }
  return {
    name: textOf(fields, "name", /^[a-z0-9-]{1,64}$/, name),
    epsilon: numberOf(fields, "epsilon", EPSILON, name),
    parameters: own(parameters) as Readonly<Record<string, unknown>>,
  };
}
