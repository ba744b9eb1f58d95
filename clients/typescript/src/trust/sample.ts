/** Who is asked: the part of the clients that a campaign names (docs/adr/0050). */

import { hex, utf8 } from "../bytes.js";
import { FormatError, NotAsked, Untrusted } from "../errors.js";
import { fieldsOf, IDENTIFIER, listOf, numberOf, textOf } from "../fields.js";
import { freshBytes } from "../maths/words.js";
import { own } from "../own.js";
import { part } from "../loading.js";
import type { Store } from "../store/store.js";
import type { Terms } from "./asked.js";
import type * as installation from "./installation.js";

/** The number of buckets of a layer. */
export const BUCKETS = 10_000;
/** The most layers of an app and of an installation, because the list of campaigns that ask somebody is a pseudonym. */
export const MOST_LAYERS = 3;
const MOST_RANGES = 100;

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

/**
 * Throw NotAsked unless the campaign asks this installation. A page of a campaign that asks everybody does not load how.
 *
 * @throws NotAsked; Untrusted: the campaign had another layer before, or this installation is in 3 other layers.
 */
export async function requireAsked(store: Store, terms: Terms, now: number): Promise<void> {
  if (terms.sample === undefined) return;
  const { requireAsked } = await loadInstallation();
  await requireAsked({ freshBytes, hex, utf8, own, NotAsked, Untrusted, MOST_LAYERS, BUCKETS }, store, terms, terms.sample, now);
}

/** Load what says whether a sample asks this installation. */
export function loadInstallation(): Promise<typeof installation> {
  return part(import("./installation.js"));
}
