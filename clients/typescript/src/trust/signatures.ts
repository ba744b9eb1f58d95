/** Signatures (Ed25519) of the operator's files, checked with public keys that the app ships. */

import { blake2b, concat, hex, unhex, utf8 } from "../bytes.js";
import { FormatError, SignatureError } from "../errors.js";
import { fieldsOf, HEX_32, KEY_ID, textOf, timeOf, type Fields } from "../fields.js";
import { verifyEd25519 } from "./ed25519.js";

const SIGNATURE = /^[0-9a-f]{128}$/;

/** The purpose of a signature; a signature for another purpose is refused, whatever the bytes are. */
export type Purpose = "campaign" | "delegation" | "restart";

/** A signer's public key, and its time of validity, in milliseconds since 1970. */
export interface VerifyKey {
  readonly id: string;
  readonly key: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/** A signature in hexadecimal digits, and the id of the key that made it. */
export interface Signature {
  readonly keyId: string;
  readonly signature: string;
}

/** Read a public key from a file's data. Throws FormatError, which names the file and the field. */
export function parseVerifyKey(data: unknown, name: string): VerifyKey {
  const fields = fieldsOf(data, name, ["id", "key", "not_before", "not_after"]);
  const id = textOf(fields, "id", KEY_ID, name);
  const key = textOf(fields, "key", HEX_32, name);
  const [notBefore, notAfter] = [timeOf(fields, "not_before", name), timeOf(fields, "not_after", name)];
  const named = hex(blake2b(unhex(key), { length: 8, person: "verify key" }));
  if (id !== named) throw new FormatError(`${name}: id is ${id}, but the key has id ${named}`);
  if (notBefore >= notAfter) throw new FormatError(`${name}: not_after must be later than not_before`);
  return { id, key, notBefore, notAfter };
}

/** Read a signature from a file's data. Throws FormatError, which names the file and the field. */
export function parseSignature(data: unknown, name: string): Signature {
  return signatureOf(fieldsOf(data, name, ["key_id", "signature"]), name);
}

/** Return the signature in the fields of a file. */
export function signatureOf(fields: Fields, name: string): Signature {
  return { keyId: textOf(fields, "key_id", KEY_ID, name), signature: textOf(fields, "signature", SIGNATURE, name) };
}

/** Return the bytes to sign: the payload after the name of its purpose, so that no signature is valid for two purposes. */
export function signedBytes(payload: Uint8Array, purpose: Purpose): Uint8Array {
  return concat(utf8(`hushcount signature 1\0${purpose}\0`), payload);
}

/**
 * Check a signature of exactly these bytes by one of the trusted keys, and return the key that made it.
 *
 * The check does not show when the signature was made, or whether something newer was signed since.
 *
 * @throws SignatureError the signature is by another key, for another purpose, or of other bytes.
 */
export async function verify(
  keys: readonly VerifyKey[],
  payload: Uint8Array,
  purpose: Purpose,
  { keyId, signature }: Signature,
): Promise<VerifyKey> {
  const key = keys.find(({ id }) => id === keyId);
  if (key === undefined) {
    const trusted = keys.map(({ id }) => id).join(", ") || "none";
    throw new SignatureError(`the ${purpose} was signed with key ${keyId}, but trusted are ${trusted}`);
  }
  if (!(await verifyEd25519(unhex(key.key), signedBytes(payload, purpose), unhex(signature)))) {
    throw new SignatureError(
      `the signature of the ${purpose} by key ${key.id} is wrong: it was altered, or signed as something else`,
    );
  }
  return key;
}
