import { StoreError } from "../errors.js";
import type { Entry, Outcome, Store, Value, Wanted } from "./store.js";

const RECORDS = "records";
const VERSION = 1;
/** The greatest string unit: it follows every key that begins with a prefix. */
const AFTER = "\uffff";

/**
 * Records in an IndexedDB database of this origin. Its transactions keep tabs and workers apart.
 *
 * The records are as private as the rest of what the origin keeps. Clearing the site's data deletes them.
 */
export class IndexedDbStore implements Store {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Another version of the app deletes or upgrades the database: do not stand in its way.
    database.onversionchange = () => {
      database.close();
    };
  }

  /** Open the database, made at the first time. Throws StoreError where a browser keeps nothing. */
  static open(name = "hushcount"): Promise<IndexedDbStore> {
    return new Promise((resolve, reject) => {
      const failed = (cause: unknown) => {
        reject(storeError(`cannot open database ${name}`, cause));
      };
      try {
        const request = indexedDB.open(name, VERSION);
        request.onupgradeneeded = () => request.result.createObjectStore(RECORDS);
        request.onsuccess = () => {
          resolve(new IndexedDbStore(request.result));
        };
        request.onerror = () => {
          failed(request.error);
        };
      } catch (cause) {
        failed(cause);
      }
    });
  }

  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      let decided: { readonly result: Result } | undefined;
      let thrown: { readonly error: unknown } | undefined;
      try {
        // Strict: complete means on the device's disk. A browser that does not know the option ignores it.
        const transaction = this.#database.transaction(RECORDS, "readwrite", { durability: "strict" });
        const records = transaction.objectStore(RECORDS);
        transaction.oncomplete = () => {
          if (decided) resolve(decided.result);
        };
        transaction.onabort = () => {
          reject(thrown ? (thrown.error as Error) : storeError("cannot write the database", transaction.error));
        };
        read(records, wanted, (found) => {
          try {
            const { put = [], remove = [], result } = step(found);
            for (const key of remove) records.delete(key);
            for (const [key, value] of put) records.put(value, key);
            decided = { result };
          } catch (error) {
            thrown = { error };
            transaction.abort();
          }
        });
      } catch (cause) {
        reject(storeError("cannot use the database", cause));
      }
    });
  }

  close(): void {
    this.#database.close();
  }
}

/** Read all that is wanted at once, and hand it over inside the transaction. */
function read(records: IDBObjectStore, wanted: readonly Wanted[], then: (found: Entry[][]) => void): void {
  const found: Entry[][] = wanted.map(() => []);
  let open = wanted.length;
  if (open === 0) {
    then(found);
    return;
  }
  wanted.forEach((one, place) => {
    const [last, entries] = requested(records, one);
    last.onsuccess = () => {
      found[place] = entries();
      open -= 1;
      if (open === 0) then(found);
    };
  });
}

/** Ask for the records of one wanted; return the last request, and what reads its result once it succeeds. */
function requested(records: IDBObjectStore, wanted: Wanted): readonly [IDBRequest, () => Entry[]] {
  if (typeof wanted === "string") {
    const value = records.get(wanted) as IDBRequest<Value | undefined>;
    return [value, () => (value.result === undefined ? [] : [[wanted, value.result]])];
  }
  const range = IDBKeyRange.bound(wanted.prefix, wanted.prefix + AFTER);
  if ("count" in wanted) {
    const count = records.count(range);
    return [count, () => [[wanted.prefix, count.result]]];
  }
  const keys = records.getAllKeys(range, wanted.most);
  if (wanted.values === false) return [keys, () => keys.result.map((key) => [String(key), null])];
  // Requests of a transaction succeed in turn: the keys are there before the values.
  const values = records.getAll(range, wanted.most) as IDBRequest<Value[]>;
  return [values, () => keys.result.map((key, row) => [String(key), values.result[row] ?? null])];
}

function storeError(what: string, cause: unknown): StoreError {
  const why = cause instanceof Error ? cause.name : "no reason given";
  return new StoreError(`${what} (${why}): free space, or allow this site to keep data`);
}
