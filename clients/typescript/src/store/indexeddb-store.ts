import { StoreError } from "../errors.js";
import { own } from "../own.js";
import type { Entry, Outcome, Store, Value, Wanted } from "./store.js";

const RECORDS = "records";
const VERSION = 1;
/** The greatest string unit: it follows every key that begins with a prefix. */
const AFTER = "\uffff";
/** Milliseconds before a step is tried anew. */
const PAUSE = 100;

/**
 * Records in an IndexedDB database of this origin. Its transactions keep tabs and workers apart.
 *
 * A browser may close the connection at any moment, as Safari does with a page in the background. The database is then
 * opened again, and the step is tried anew, twice at most and not at once, since a browser that deletes data closes what
 * is opened meanwhile: nothing of a step that failed was written.
 *
 * The records are as private as the rest of what the origin keeps. Clearing the site's data deletes them, and so may a
 * browser that is short of space, or that was not used for long.
 */
export class IndexedDbStore implements Store {
  readonly #name: string;
  #connection: Promise<IDBDatabase> | undefined;
  #closed = false;

  private constructor(name: string) {
    this.#name = name;
  }

  /**
   * Open the database, made at the first time, and ask the browser not to evict it.
   *
   * @throws StoreError the browser keeps nothing.
   */
  static async open(name = "hushcount"): Promise<IndexedDbStore> {
    const store = new IndexedDbStore(name);
    await store.change([], () => ({ result: undefined }));
    void persist();
    return store;
  }

  async change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    for (let left = 2; ; left -= 1) {
      if (this.#closed) throw new StoreError("the store was closed by the app: open it again");
      const connection = (this.#connection ??= connected(this.#name));
      let decided: () => Result;
      try {
        decided = await transacted(await connection, wanted, step);
      } catch (cause) {
        const name = cause instanceof Error ? cause.name : "no reason given";
        const isFull = name === "QuotaExceededError";
        if (!isFull && this.#connection === connection) this.#disconnect();
        if (!isFull && left > 0) {
          await new Promise((resolve) => setTimeout(resolve, PAUSE));
          continue;
        }
        const cure = isFull ? "free space on this device" : "load the page again, or allow this site to keep data";
        throw new StoreError(`cannot use the database (${name}): ${cure}`);
      }
      return decided();
    }
  }

  close(): void {
    this.#closed = true;
    this.#disconnect();
  }

  /** Let go of the connection once its transactions have ended. */
  #disconnect(): void {
    const nothing = (): void => undefined;
    this.#connection?.then((database) => {
      database.close();
    }, nothing);
    this.#connection = undefined;
  }
}

/** Ask for storage that is not evicted; Firefox asks the person. */
async function persist(): Promise<void> {
  try {
    await navigator.storage.persist();
  } catch {
    // A worker may not ask, nor an old browser.
  }
}

function connected(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, VERSION);
    request.onupgradeneeded = () => request.result.createObjectStore(RECORDS);
    request.onsuccess = () => {
      const database = request.result;
      // Another version of the app deletes or upgrades the database: do not stand in its way.
      database.onversionchange = () => {
        database.close();
      };
      resolve(database);
    };
    request.onerror = () => {
      reject(request.error ?? new Error());
    };
  });
}

/** Return what gives the step's result, or throws its error, once the transaction has ended; reject if it failed. */
function transacted<Result>(
  database: IDBDatabase,
  wanted: readonly Wanted[],
  step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
): Promise<() => Result> {
  return new Promise((resolve, reject) => {
    // Strict: complete means on the device's disk. A browser that does not know the option ignores it.
    const transaction = database.transaction(RECORDS, "readwrite", { durability: "strict" });
    const records = transaction.objectStore(RECORDS);
    transaction.onabort = () => {
      reject(transaction.error ?? new Error());
    };
    const abort = (settle: () => void): void => {
      transaction.onabort = settle;
      try {
        transaction.abort();
      } catch {
        // The browser did so already, as it closed the connection.
        settle();
      }
    };
    read(records, wanted, (found) => {
      let outcome: Outcome<Result>;
      try {
        outcome = step(found);
      } catch (error) {
        abort(() => {
          resolve(() => {
            throw error;
          });
        });
        return;
      }
      const { put = [], remove = [], result } = own(outcome);
      transaction.oncomplete = () => {
        resolve(() => result);
      };
      try {
        for (const key of remove) records.delete(key);
        for (const [key, value] of put) records.put(value, key);
      } catch (cause) {
        abort(() => {
          reject(cause as Error);
        });
      }
    });
  });
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
  const { prefix, most, values: wantsValues, count: wantsCount } = own(wanted);
  const range = IDBKeyRange.bound(prefix, prefix + AFTER);
  if (wantsCount === true) {
    const count = records.count(range);
    return [count, () => [[prefix, count.result]]];
  }
  const keys = records.getAllKeys(range, most);
  if (wantsValues === false) return [keys, () => keys.result.map((key) => [String(key), null])];
  // Requests of a transaction succeed in turn: the keys are there before the values.
  const values = records.getAll(range, most) as IDBRequest<Value[]>;
  return [values, () => keys.result.map((key, row) => [String(key), values.result[row] ?? null])];
}
