/** Counts by window or day, of those alone that were changed last. */

/** The count that was changed last comes last. */
export type Counts<Key, Count> = readonly (readonly [key: Key, count: Count])[];

const MOST_KEPT = 16;

/** Return the count of a key, or undefined. */
export function countOf<Key, Count>(counts: Counts<Key, Count>, key: Key): Count | undefined {
  return counts.find(([other]) => other === key)?.[1];
}

/**
 * Return counts with one of them changed, the 16 that were changed last.
 *
 * Whoever counts by a clock that may be wrong keeps the windows that it has shown, not the newest alone: a clock that was
 * ahead then mutes nobody, and one that flaps between windows opens none anew.
 */
export function lastChanged<Key, Count>(counts: Counts<Key, Count>, key: Key, count: Count): Counts<Key, Count> {
  return [...counts.filter(([other]) => other !== key), [key, count] as const].slice(-MOST_KEPT);
}
