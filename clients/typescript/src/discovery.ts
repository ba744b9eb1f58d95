/** Discovery reports: a value's hash for the auxiliary server, around a box that the analyzer opens if it is kept. */

import { blake2b, concat, utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";
import { seal, sealAlike, sealBy } from "./wire/sealing.js";

const HASH_BYTES = 32;
const NOTHING = 0xffff;

/** What all discovery reports of a campaign have in common. */
export interface DiscoveryFormat {
  readonly binding: Uint8Array;
  readonly hashKey: Uint8Array;
  readonly maxValueBytes: number;
  readonly analyzer: Uint8Array;
  readonly auxServer: Uint8Array;
}

/** Return whether a value is longer than discovery reports can hold. */
export function isTooLong(value: string, { maxValueBytes }: DiscoveryFormat): boolean {
  return utf8(value).length > maxValueBytes;
}

/**
 * Make a sealed discovery report.
 *
 * @param value undefined stands for "nothing to discover": a random hash and a random key, as no other report has.
 * @param fresh the 64 random bytes of such a report, and
 * @param secret the ephemeral secret of the outer box: for tests alone.
 */
export async function discoveryReport(
  format: DiscoveryFormat,
  value: string | undefined,
  fresh: Uint8Array = crypto.getRandomValues(new Uint8Array(2 * HASH_BYTES)),
  secret?: Uint8Array,
): Promise<Uint8Array> {
  const { binding, hashKey, analyzer, auxServer } = format;
  // Both ways hash alike, so that time tells little.
  const named = blake2b(concat(binding, utf8(value ?? "")), { length: HASH_BYTES, key: hashKey });
  const [hash, key] = value === undefined ? [fresh.subarray(0, HASH_BYTES), fresh.subarray(HASH_BYTES)] : [named, hashKey];
  const inner = await sealAlike(analyzer, concat(binding, padded(value, format)), key);
  const plain = concat(binding, hash, inner);
  return secret === undefined ? seal(auxServer, plain) : sealBy(secret, auxServer, plain);
}

/** Return a value in its length: all have one. Throws FormatError if it is longer; the value is not repeated. */
export function padded(value: string | undefined, { maxValueBytes }: Pick<DiscoveryFormat, "maxValueBytes">): Uint8Array {
  const bytes = utf8(value ?? "");
  if (bytes.length > maxValueBytes) {
    throw new FormatError(`a value has ${String(bytes.length)} bytes, must have at most ${String(maxValueBytes)}`);
  }
  const length = value === undefined ? NOTHING : bytes.length;
  const whole = new Uint8Array(2 + maxValueBytes);
  whole.set([length & 255, length >>> 8]);
  whole.set(bytes, 2);
  return whole;
}
