/** Discovery reports: a value's hash for the auxiliary server, around a box that the analyzer opens if it is kept. */

import { blake2b, concat, utf8 } from "./bytes.js";
import { FormatError } from "./errors.js";
import { sealAlike, sealBy } from "./wire/sealing.js";

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
 * @param fresh draws the 64 random bytes of such a report.
 * @param secret the ephemeral secret of the outer box, 32 random bytes.
 */
export async function discoveryReport(
  format: DiscoveryFormat,
  value: string | undefined,
  fresh: () => Uint8Array,
  secret: Uint8Array,
): Promise<Uint8Array> {
  const { binding, hashKey, analyzer, auxServer } = format;
  const [hash, key] = value === undefined ? halves(fresh()) : [hashOf(value, format), hashKey];
  const inner = await sealAlike(analyzer, concat(binding, padded(value, format)), key);
  return sealBy(secret, auxServer, concat(binding, hash, inner));
}

/** Return the hash that a value's bin has in the campaign. */
export function hashOf(value: string, { binding, hashKey }: DiscoveryFormat): Uint8Array {
  return blake2b(concat(binding, utf8(value)), { length: HASH_BYTES, key: hashKey });
}

function halves(bytes: Uint8Array): readonly [Uint8Array, Uint8Array] {
  return [bytes.subarray(0, HASH_BYTES), bytes.subarray(HASH_BYTES)];
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
