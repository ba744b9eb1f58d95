/** The vectors that Python's client is held to, and what they say of a campaign file. */

import { readFileSync } from "node:fs";
import type { Asked, Stream } from "../src/trust/asked.js";

/** An entry of a file of vectors. */
export type Entry = Readonly<Record<string, any>>;

/** A file of vectors, with what else it says. */
export interface Vectors {
  readonly accept: readonly Entry[];
  readonly refuse: readonly Entry[];
}

/** Read a file of vectors. */
export function vectors(name: string): Vectors {
  return JSON.parse(readFileSync(new URL(`../../../vectors/v1/${name}.json`, import.meta.url), "utf8"));
}

/** Return what a campaign of the vectors asks, by its name. */
export function askedOf(name: string): Asked {
  const entry = vectors("campaigns").accept.find((each) => each.name === name);
  if (entry === undefined) throw new Error(`there is no campaign ${name}`);
  const { file, sealed_bytes: lengths } = entry;
  const sides = file.discovery?.relation === "add-remove" ? 2 : 1;
  return {
    id: file.id,
    epoch: file.epoch,
    fingerprint: entry.fingerprint,
    terms: entry.terms,
    previous: file.previous,
    evaluatorKey: file.keys.evaluator[0]?.key,
    head: entry.head,
    streams: Object.keys(lengths) as Stream[],
    epsilon: file.mechanism?.epsilon ?? 0,
    memory: file.memory,
    memoryValues: file.memory_values,
    discovery: {
      epsilon: sides * (file.discovery?.epsilon ?? 0),
      delta: sides * (file.discovery?.delta ?? 0),
    },
    cap: file.shuffle.cap,
    minimumBatch: file.shuffle.minimum_batch,
    shuffleDelta: file.shuffle.delta,
    collectors: file.collectors,
    passes: file.passes,
    windows: file.windows,
    noise: file.noise,
    url: file.url,
    axes: file.axes,
    publicStrata: (file.axes?.listed ?? [])
      .filter((axis: Entry) => axis.public)
      .reduce((product: number, { values }: Entry) => product * (values.length + 1), 1),
    takesNumbers: file.number !== undefined,
    sample: file.sample,
    sealedBytes: (stream) => lengths[stream],
  };
}
