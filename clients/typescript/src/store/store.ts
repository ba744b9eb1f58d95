/** Where a device keeps what must outlive a page: one small interface, which IndexedDB and plain memory fulfil. */

/** What a record may hold: plain data that the structured clone algorithm copies. */
export type Value =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [name: string]: Value };

/** Records to read: those of one key, or of a range of keys. */
export type Wanted = string | Range;

/** The first `most` records whose keys begin with a prefix, or only how many there are, as one entry's value. */
export interface Range {
  readonly prefix: string;
  readonly most?: number;
  readonly values?: false;
  readonly count?: true;
}

/** A key with its value. */
export type Entry = readonly [key: string, value: Value];

/** What a step decides: records to write, keys to delete, and what the caller gets. */
export interface Outcome<Result> {
  readonly put?: readonly Entry[];
  readonly remove?: readonly string[];
  readonly result: Result;
}

/** Records by key. Pages, tabs and workers of one origin that open the same store share them. */
export interface Store {
  /**
   * Read records, decide, and write, as one atomic and durable step: no other step runs between, in any tab.
   *
   * @param wanted the records to read; the step gets those of each in turn, of a key that has none an empty list. Keys
   *   are in ascending order, and values null if `values` is false.
   * @param step decides at once, without waiting for anything. It may run again if another step came between.
   * @returns the step's result, once all that it writes outlives the page.
   * @throws StoreError the store cannot be read or written: nothing was written. An error of the step: nor then.
   */
  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result>;

  /** Let go of the store; the records stay. */
  close(): void;
}

/** Return the value of the only key wanted, or undefined. */
export function valueOf(found: readonly Entry[] | undefined): Value | undefined {
  return found?.[0]?.[1];
}
