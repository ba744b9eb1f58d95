/**
 * The bucket of an installation in a layer, by a random id of its own (docs/adr/0050). Only campaigns with a sample load
 * this module.
 */

import type { hex, utf8 } from "../bytes.js";
import type { NotAsked, Untrusted } from "../errors.js";
import type { freshBytes } from "../maths/words.js";
import type { own } from "../own.js";
import type { Store, Value } from "../store/store.js";
import type { Terms } from "./asked.js";
import type { BUCKETS, MOST_LAYERS, Sample } from "./sample.js";

const KEY = "installation";
const ID_BYTES = 16;
const YEAR = 365 * 86_400_000;

/** Functions and numbers of the page, which are passed in so that this module need not import them. */
export interface Tools {
  readonly freshBytes: typeof freshBytes;
  readonly hex: typeof hex;
  readonly utf8: typeof utf8;
  readonly own: typeof own;
  readonly NotAsked: typeof NotAsked;
  readonly Untrusted: typeof Untrusted;
  readonly MOST_LAYERS: typeof MOST_LAYERS;
  readonly BUCKETS: typeof BUCKETS;
}

/** Return the bucket of an installation, whose id is 32 hexadecimal digits, in a layer: in 0..BUCKETS - 1. */
export function bucketOf({ utf8, BUCKETS }: Pick<Tools, "utf8" | "BUCKETS">, id: string, layer: string): number {
  return murmur3(utf8(`${layer}:${id}`)) % BUCKETS;
}

/**
 * Throw NotAsked unless the campaign asks this installation, whose id is made here if it is missing or a year old.
 *
 * Privacy: the id is never sent, and the answer is the same for every value.
 *
 * @throws NotAsked; Untrusted: the campaign had another layer before, or this installation is in 3 other layers.
 */
export async function requireAsked(
  tools: Tools,
  store: Store,
  { id: campaign }: Terms,
  { layer, buckets }: Sample,
  now: number,
): Promise<void> {
  const { freshBytes, hex, own, NotAsked, Untrusted, MOST_LAYERS } = tools;
  const id = await store.change([KEY], ([found]) => {
    const kept = keptOf(own, found?.[0]?.[1]);
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
  const bucket = bucketOf(tools, id, layer);
  if (buckets.some(([first, end]) => first <= bucket && bucket < end)) return;
  throw new NotAsked(`campaign ${campaign} asks a sample of its clients, and not this one: make no report`);
}

interface Kept {
  readonly id: string;
  readonly drawn: number;
  readonly layers: Readonly<Record<string, string>>;
}

function keptOf(own: Tools["own"], value: Value | undefined): Kept {
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
