import { StoreError } from "../errors.js";
import { own } from "../own.js";
import type { Entry, Outcome, Store, Value, Wanted } from "./store.js";

const RECORDS = "records";
const VERSION = 1;
/** The greatest UTF-16 unit: a prefix with it sorts after all keys with the prefix. */
const AFTER = String.fromCharCode(0xffff);
/** Milliseconds before a step is repeated. */
const PAUSE = 100;

/**
 * Records in an IndexedDB database of this origin. Transactions make the steps of tabs and workers atomic.
 *
 * A browser may close the connection at any moment, as Safari does with a page in the background. Then the database is
 * opened again, and the step is repeated, at most twice; this is safe, because a failed step wrote nothing. There is a
 * pause before each repetition, because a browser that deletes data closes connections that are opened meanwhile.
 *
 * The records are as private as all other data of the origin. Clearing the site's data deletes the records. A browser
 * may also delete the records when space is short, or when the site was not used for a long time.
 */
export class IndexedDbStore implements Store {
  readonly #name: string;
  #connection: Promise<IDBDatabase> | undefined;
  #closed = false;

  private constructor(name: string) {
    this.#name = name;
  }

  /**
   * Open the database, or create it, and ask the browser not to evict it.
   *
   * @throws StoreError the browser cannot store data.
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

  /** Close the connection after its transactions have ended. */
  #disconnect(): void {
    const nothing = (): void => undefined;
    this.#connection?.then((database) => {
      database.close();
    }, nothing);
    this.#connection = undefined;
  }
}

/** Ask the browser for storage that is not evicted; Firefox then asks the person. */
async function persist(): Promise<void> {
  try {
    await navigator.storage.persist();
  } catch {
    // Workers and old browsers have no such request.
  }
}

function connected(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, VERSION);
    request.onupgradeneeded = () => request.result.createObjectStore(RECORDS);
    request.onsuccess = () => {
      const database = request.result;
      // Another version of the app wants to delete or upgrade the database, and must not be blocked.
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

/** After the transaction has ended, return a function that returns the step's result or throws its error; reject if the
 * transaction failed. */
function transacted<Result>(
  database: IDBDatabase,
  wanted: readonly Wanted[],
  step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
): Promise<() => Result> {
  return new Promise((resolve, reject) => {
    // With "strict", the event "complete" means that the data are written to the device's disk. Browsers without this
    // option ignore it.
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
        // The browser aborted the transaction already when it closed the connection.
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

/** Read all wanted records in parallel, and pass them on inside the transaction. */
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

/** Request the records of one `Wanted`; return the last request, and a function that reads the result after success. */
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
  // Requests of a transaction succeed in order, so the keys come before the values.
  const values = records.getAll(range, most) as IDBRequest<Value[]>;
  return [values, () => keys.result.map((key, row) => [String(key), values.result[row] ?? null])];
}
