/**
 * The storage for data that must outlive a page. It is a small interface, which is implemented with IndexedDB and in
 * memory.
 */

/** The value of a record: plain data that the structured clone algorithm copies. */
export type Value =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [name: string]: Value };

/** Selects the records to read: one key, or a range of keys. */
export type Wanted = string | Range;

/** The first `most` records with a key prefix; or only the number of these records, as the value of one entry. */
export interface Range {
  readonly prefix: string;
  readonly most?: number;
  readonly values?: false;
  readonly count?: true;
}

/** A key with its value. */
export type Entry = readonly [key: string, value: Value];

/** The outcome of a step: records to write, keys to delete, and the caller's result. */
export interface Outcome<Result> {
  readonly put?: readonly Entry[];
  readonly remove?: readonly string[];
  readonly result: Result;
}

/** Records by key. Pages, tabs and workers of one origin that open the same store share its records. */
export interface Store {
  /**
   * Read records, decide, and write, as one atomic and durable step: no tab runs another step between this step's
   * reading and writing.
   *
   * @param wanted the records to read; the step gets a list for each, in order; it is empty for a key without a record.
   *   Keys ascend, and values are null if `values` is false.
   * @param step decides synchronously, without awaiting anything. `step` may run again if another step came between.
   * @returns the step's result, after all its writes are durable.
   * @throws StoreError the store cannot be read or written, and nothing was written. If the step throws, its error is thrown,
   *   and nothing is written.
   */
  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result>;

  /** Close the store; the records are kept. */
  close(): void;
}

/** Return the value of the only wanted key, or undefined. */
export function valueOf(found: readonly Entry[] | undefined): Value | undefined {
  return found?.[0]?.[1];
}
