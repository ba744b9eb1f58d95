import type { Entry, Outcome, Store, Value, Wanted } from "./store.js";

/** Records in this page's memory, for tests and for an app that keeps nothing: they end with the page. */
export class MemoryStore implements Store {
  readonly #records = new Map<string, Value>();

  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    // Nothing waits from the first reading to the last writing, so no other step comes between.
    return new Promise((resolve) => {
      const { put = [], remove = [], result } = step(wanted.map((one) => this.#found(one)));
      for (const key of remove) this.#records.delete(key);
      for (const [key, value] of put) this.#records.set(key, structuredClone(value));
      resolve(result);
    });
  }

  close(): void {}

  #found(wanted: Wanted): Entry[] {
    const keys =
      typeof wanted === "string"
        ? [wanted].filter((key) => this.#records.has(key))
        : [...this.#records.keys()]
            .filter((key) => key.startsWith(wanted.prefix))
            .sort()
            .slice(0, wanted.most);
    const unread = typeof wanted !== "string" && wanted.values === false;
    return keys.map((key) => [key, unread ? null : structuredClone(this.#records.get(key) as Value)]);
  }
}
