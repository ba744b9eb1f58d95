/** Counts by window or day; only the counts that changed last are kept. */

/** The count that changed last comes last. */
export type Counts<Key, Count> = readonly (readonly [key: Key, count: Count])[];

const MOST_KEPT = 16;

/** Return the count of a key, or undefined. */
export function countOf<Key, Count>(counts: Counts<Key, Count>, key: Key): Count | undefined {
  return counts.find(([other]) => other === key)?.[1];
}

/**
 * Change one count, and return the 16 counts that changed last.
 *
 * The clock may be wrong, so counts of several windows are kept, not only the count of the newest window. So a clock
 * that was ahead blocks no reports, and a clock that jumps between windows does not renew the caps of these windows.
 */
export function lastChanged<Key, Count>(counts: Counts<Key, Count>, key: Key, count: Count): Counts<Key, Count> {
  return [...counts.filter(([other]) => other !== key), [key, count] as const].slice(-MOST_KEPT);
}
