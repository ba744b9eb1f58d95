/** Who is asked: the bucket of an installation in a layer, by a random id of its own (docs/adr/0050). */

import { hex, utf8 } from "../bytes.js";
import { FormatError, NotAsked, Untrusted } from "../errors.js";
import { fieldsOf, IDENTIFIER, listOf, numberOf, textOf } from "../fields.js";
import { freshBytes } from "../maths/words.js";
import { own } from "../own.js";
import { valueOf, type Store, type Value } from "../store/store.js";
import type { Terms } from "./asked.js";

/** The number of buckets of a layer. */
export const BUCKETS = 10_000;
/** The most layers of an app and of an installation, because the list of campaigns that ask somebody is a pseudonym. */
export const MOST_LAYERS = 3;
const MOST_RANGES = 100;
const KEY = "installation";
const ID_BYTES = 16;
const YEAR = 365 * 86_400_000;

/** The part of the clients that a campaign asks: ranges of buckets of a layer, each [first, end). */
export interface Sample {
  readonly layer: string;
  readonly buckets: readonly (readonly [first: number, end: number])[];
}

/** Read the section of a campaign file. */
export function sampleOf(data: unknown, file: string): Sample {
  const name = `${file}: sample`;
  const fields = fieldsOf(data, name, ["layer", "buckets"]);
  const buckets = listOf(fields, "buckets", MOST_RANGES, name).map((span): readonly [number, number] => {
    const ends = own({ span });
    const [first, end] = listOf(ends, "span", 2, `${name}: buckets`).map((_, place, all) =>
      numberOf(own({ end: all[place] }), "end", [0, BUCKETS], `${name}: buckets`, true),
    );
    if (first === undefined || end === undefined) throw new FormatError(`${name}: a range of buckets must be two numbers`);
    return [first, end];
  });
  const ends = buckets.flat();
  if (ends.length === 0 || ends.some((end, place) => place > 0 && end <= (ends[place - 1] ?? 0))) {
    throw new FormatError(`${name}: buckets must rise from number to number`);
  }
  return { layer: textOf(fields, "layer", IDENTIFIER, name), buckets };
}

/** Return the share of all clients that are asked, in (0, 1]. */
export function shareOf({ buckets }: Sample): number {
  return buckets.reduce((sum, [first, end]) => sum + end - first, 0) / BUCKETS;
}

/** Return the bucket of an installation, whose id is 32 hexadecimal digits, in a layer: in 0..BUCKETS - 1. */
export function bucketOf(id: string, layer: string): number {
  return murmur3(utf8(`${layer}:${id}`)) % BUCKETS;
}

/**
 * Throw NotAsked unless the campaign asks this installation, whose id is made here if it is missing or a year old.
 *
 * Privacy: the id is never sent, and the answer is the same for every value.
 *
 * @throws NotAsked; Untrusted: the campaign had another layer before, or this installation is in 3 other layers.
 */
export async function requireAsked(store: Store, { id: campaign, sample }: Terms, now: number): Promise<void> {
  if (sample === undefined) return;
  const { layer } = sample;
  const id = await store.change([KEY], ([found]) => {
    const kept = keptOf(valueOf(found));
    const before = kept.layers[campaign] ?? layer;
    const others = new Set(Object.values(kept.layers).filter((one) => one !== layer));
    if (before !== layer) {
      throw new Untrusted(`layer of campaign ${campaign} is ${layer}, was ${before}: a campaign keeps its layer`);
    }
    if (others.size >= MOST_LAYERS) {
      throw new Untrusted(
        `layer of campaign ${campaign} is ${layer}, but this installation is in ${String(others.size)} layers already ` +
          `(${[...others].sort().join(", ")}): give the campaign one of these layers`,
      );
    }
    const isOld = kept.id === "" || now - kept.drawn >= YEAR;
    const after = isOld ? { ...kept, id: hex(freshBytes(ID_BYTES)), drawn: now } : kept;
    if (!isOld && campaign in kept.layers) return { result: kept.id };
    return { put: [[KEY, { ...after, layers: { ...after.layers, [campaign]: layer } }]], result: after.id };
  });
  const bucket = bucketOf(id, layer);
  if (sample.buckets.some(([first, end]) => first <= bucket && bucket < end)) return;
  throw new NotAsked(`campaign ${campaign} asks a sample of its clients, and not this one: make no report`);
}

interface Kept {
  readonly id: string;
  readonly drawn: number;
  readonly layers: Readonly<Record<string, string>>;
}

function keptOf(value: Value | undefined): Kept {
  return value === undefined ? own({ id: "", drawn: 0, layers: own({}) }) : own(value as unknown as Kept);
}

/** MurmurHash3, x86, 32 bit, seed 0: public and easily inverted, so only for an even split of honest ids. */
export function murmur3(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const whole = bytes.length - (bytes.length % 4);
  let hash = 0;
  for (let at = 0; at < whole; at += 4) {
    hash = (Math.imul(turned(hash ^ mixed(view.getUint32(at, true)), 13), 5) + 0xe6546b64) | 0;
  }
  let tail = 0;
  for (let at = bytes.length - 1; at >= whole; at -= 1) tail = (tail << 8) | view.getUint8(at);
  hash ^= mixed(tail) ^ bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function mixed(block: number): number {
  return Math.imul(turned(Math.imul(block, 0xcc9e2d51), 15), 0x1b873593);
}

function turned(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
