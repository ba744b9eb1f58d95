/** Discovery reports: a hash of the value for the auxiliary server, and a box that the analyzer opens if the bin is kept. */

import { blake2b, concat, utf8 } from "../bytes.js";
import { FormatError, UsageError } from "../errors.js";
import { sealAlike, sealBy } from "../wire/sealing.js";

const HASH_BYTES = 32;
const NOTHING = 0xffff;

/** The facts that all discovery reports of a campaign share. */
export interface DiscoveryFormat {
  readonly binding: Uint8Array;
  readonly maxValueBytes: number;
  readonly analyzer: Uint8Array;
  readonly auxServer: Uint8Array;
}

/** The name that all reports of one value share: the hash of its bin, and the key of its inner box, 32 bytes each. */
export interface Name {
  readonly hash: Uint8Array;
  readonly boxKey: Uint8Array;
}

/** Return whether a value is longer than discovery reports can hold. */
export function isTooLong(value: string, { maxValueBytes }: Pick<DiscoveryFormat, "maxValueBytes">): boolean {
  return utf8(value).length > maxValueBytes;
}

/** Throw UsageError if a value is longer than discovery reports can hold; the error does not repeat the value. */
export function requireShort(value: string | undefined, format: Pick<DiscoveryFormat, "maxValueBytes">): void {
  if (value === undefined || !isTooLong(value, format)) return;
  throw new UsageError(`a value must have at most ${String(format.maxValueBytes)} bytes to be discovered`);
}

/**
 * Make a sealed discovery report.
 *
 * @param value undefined means "nothing to discover"; then no other report may have this name.
 * @param secret the ephemeral secret of the outer box, 32 random bytes.
 */
export async function discoveryReport(
  format: DiscoveryFormat,
  value: string | undefined,
  { hash, boxKey }: Name,
  secret: Uint8Array,
): Promise<Uint8Array> {
  const { binding, analyzer, auxServer } = format;
  const inner = await sealAlike(analyzer, concat(binding, padded(value, format)), boxKey);
  return sealBy(secret, auxServer, concat(binding, hash, inner));
}

/** Return the name of a value in a campaign with a hash key. */
export function keyedName({ binding }: Pick<DiscoveryFormat, "binding">, hashKey: Uint8Array, value: string): Name {
  return { hash: blake2b(concat(binding, utf8(value)), { length: HASH_BYTES, key: hashKey }), boxKey: hashKey };
}

/** Return the name of a report with nothing to discover: 64 fresh random bytes. */
export function blankName(fresh: Uint8Array): Name {
  return { hash: fresh.subarray(0, HASH_BYTES), boxKey: fresh.subarray(HASH_BYTES) };
}

/** Pad a value to the common length. Throws FormatError if the value is longer; the error does not repeat the value. */
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
