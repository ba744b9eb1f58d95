/**
 * Two hashes of a campaign file: one of everything that the file fixes, and one of everything that a publisher may not
 * change.
 */

import { blake2b, hex, unhex } from "../bytes.js";
import { canonicalJson } from "../canonical-json.js";
import type { Fields } from "../fields.js";
import { own } from "../own.js";

/** Return BLAKE2b-256 of the file, without the dictionary's path, and with the commitment in place of the hash key. */
export function fingerprintOf(file: Fields): string {
  return hex(blake2b(canonicalJson(fixed(file)), { length: 32 }));
}

/** Return BLAKE2b-256 of everything that a publisher may not change from one epoch to the next. */
export function termsOf(file: Fields): string {
  const made: Fields = { ...without(fixed(file), "epoch", "previous"), ...(Object.hasOwn(file, "dictionary") ? { dictionary: {} } : {}) };
  const terms = changed(changed(made, "mechanism", "parameters"), "discovery", "hash_key_commitment");
  // The evaluator's key is left out, because the delegation names the evaluator's keys that a publisher may use.
  // A publisher may add days to the keys of passes, and list more windows.
  const kept = changed(changed(changed(terms, "passes", "days"), "passes", "first"), "windows", "starts");
  return hex(blake2b(canonicalJson(changed(kept, "keys", "evaluator")), { length: 32, person: "campaign terms" }));
}

function fixed(file: Fields): Fields {
  const made = changed(file, "dictionary", "path");
  const { hash_key: key, ...discovery } = own(file.discovery as Fields | undefined);
  if (typeof key !== "string") return made;
  const commitment = hex(blake2b(unhex(key), { length: 32, person: "hash key" }));
  return { ...made, discovery: { ...discovery, hash_key_commitment: commitment } };
}

/** Return the file without a field of one section, if the file has this section. */
function changed(file: Fields, section: string, field: string): Fields {
  const fields = own(file)[section];
  return typeof fields === "object" && fields !== null ? { ...file, [section]: without(fields as Fields, field) } : file;
}

function without(fields: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}
