/** Who is asked: buckets as in the vectors, and what an installation keeps. */

import { describe, expect, test } from "vitest";
import { NotAsked, Untrusted } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { utf8 } from "../src/bytes.js";
import { bucketOf } from "../src/trust/installation.js";
import { BUCKETS, MOST_LAYERS, requireAsked, type Sample } from "../src/trust/sample.js";
import { campaignOf } from "./fake-maker.js";
import { vectors } from "./vectors.js";

const YEAR = 365 * 86_400_000;
const NOW = Date.parse("2026-11-27T00:00:00Z");
const { accept, refuse } = vectors("samples");

function asking(id: string, layer: string, ...buckets: Sample["buckets"]): ReturnType<typeof campaignOf> {
  return campaignOf(1, { id, sample: { layer, buckets } });
}

/** Return whether an installation is asked. */
async function isAsked(store: MemoryStore, campaign: ReturnType<typeof campaignOf>, now = NOW): Promise<boolean> {
  return requireAsked(store, campaign, now).then(
    () => true,
    (error: unknown) => {
      expect(error).toBeInstanceOf(NotAsked);
      return false;
    },
  );
}

describe("samples", () => {
  test.each([...accept, ...refuse].map((entry, place) => [place, entry] as const))("vector %i", async (_, entry) => {
    const bucket = bucketOf({ utf8, BUCKETS }, entry.id, entry.layer);
    if (entry.bucket !== undefined) expect(bucket).toBe(entry.bucket);
    const store = new MemoryStore();
    await store.change([], () => ({ put: [["installation", { id: entry.id, drawn: NOW, layers: {} }]], result: undefined }));
    expect(await isAsked(store, asking("c", entry.layer, ...entry.buckets))).toBe(entry.bucket !== undefined);
  });

  test("an installation is asked by one campaign of a layer, until its id is a year old", async () => {
    const halves = [asking("first", "shared", [0, 5000]), asking("second", "shared", [5000, BUCKETS])] as const;
    const stores = Array.from({ length: 40 }, () => new MemoryStore());
    const asked = (now: number): Promise<boolean[][]> =>
      Promise.all(stores.map((store) => Promise.all(halves.map((half) => isAsked(store, half, now)))));
    const first = await asked(NOW);
    expect(first.every(([one, other]) => one !== other)).toBe(true);
    // All of 40 are in one half with probability 2e-12, and stay where they are after a year with 1e-12.
    expect(new Set(first.map(([one]) => one)).size).toBe(2);
    expect(await asked(NOW + YEAR - 1)).toEqual(first);
    expect(await asked(NOW + YEAR)).not.toEqual(first);
  });

  test("an installation keeps the layer of each campaign, and takes part in few layers", async () => {
    const store = new MemoryStore();
    for (let number = 0; number < MOST_LAYERS; number += 1) await isAsked(store, asking(`c${String(number)}`, `layer-${String(number)}`, [0, 1]));
    await isAsked(store, asking("another", "layer-0", [1, 2]));
    await expect(requireAsked(store, asking("more", "layer-3", [0, BUCKETS]), NOW)).rejects.toThrow(Untrusted);
    await expect(requireAsked(store, asking("c0", "layer-1", [0, BUCKETS]), NOW)).rejects.toThrow(/is layer-1, was layer-0/);
  });
});
