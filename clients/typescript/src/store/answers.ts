import { BUDGET_KEY } from "../budget/budget.js";
import { chargedOf, requireOptedIn } from "../budget/ledger.js";
import { hex } from "../bytes.js";
import { HushcountError } from "../errors.js";
import { valueOf, type Store } from "./store.js";

const PREFIX = "answer/";
const MOST_ANSWERS = 1000;

/**
 * A client's memory in a store: it answers the same value alike within an epoch, so that repetition tells nothing more.
 *
 * Whoever reads the store can test a guessed value against it: it is as private as the rest of what the origin keeps.
 */
export class Answers {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Return the answer under a key of 32 bytes, or undefined. */
  get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#store.change([PREFIX + hex(key)], ([found]) => ({ result: bytesOf(valueOf(found)) }));
  }

  /**
   * Store an answer unless the key has one, and return the key's answer once that is stored for good.
   *
   * @throws HushcountError it cannot be stored, or the person opted out: the caller must then not send it.
   */
  keep(key: Uint8Array, answer: Uint8Array): Promise<Uint8Array> {
    const name = PREFIX + hex(key);
    return this.#store.change([name, { prefix: PREFIX, count: true }, BUDGET_KEY], ([found, count, budget]) => {
      // The opt-out deletes the answers, and none may come after it.
      requireOptedIn(chargedOf(valueOf(budget)));
      const kept = bytesOf(valueOf(found));
      if (kept !== undefined) return { result: kept };
      if (Number(valueOf(count)) >= MOST_ANSWERS) {
        throw new HushcountError(`the memory has ${String(MOST_ANSWERS)} answers, its limit: forget those of past epochs`);
      }
      return { put: [[name, answer]], result: answer };
    });
  }

  /** Delete all answers. */
  clear(): Promise<void> {
    return this.#store.change([{ prefix: PREFIX, most: MOST_ANSWERS, values: false }], ([all = []]) => ({
      remove: all.map(([key]) => key),
      result: undefined,
    }));
  }
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}
