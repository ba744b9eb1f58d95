import { own } from "../own.js";
import type { Entry, Outcome, Store, Value, Wanted } from "./store.js";

/**
 * Records in this page's memory, for tests and for apps that keep no data. The records are lost when the page closes.
 */
export class MemoryStore implements Store {
  readonly #records = new Map<string, Value>();

  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    // Nothing is awaited between the first read and the last write, so no other step runs between them.
    return new Promise((resolve) => {
      const { put = [], remove = [], result } = own(step(wanted.map((one) => this.#found(one))));
      for (const key of remove) this.#records.delete(key);
      for (const [key, value] of put) this.#records.set(key, structuredClone(value));
      resolve(result);
    });
  }

  close(): void {}

  #found(wanted: Wanted): Entry[] {
    if (typeof wanted === "string") return this.#entries([wanted].filter((key) => this.#records.has(key)));
    const { prefix, most, values, count } = own(wanted);
    const keys = [...this.#records.keys()].filter((key) => key.startsWith(prefix)).sort();
    if (count === true) return [[prefix, keys.length]];
    const first = keys.slice(0, most);
    return values === false ? first.map((key) => [key, null]) : this.#entries(first);
  }

  #entries(keys: readonly string[]): Entry[] {
    return keys.map((key) => [key, structuredClone(this.#records.get(key) as Value)]);
  }
}
