import { BUDGET_KEY } from "../budget/budget.js";
import { chargedOf, requireOptedIn } from "../budget/ledger.js";
import { hex } from "../bytes.js";
import { HushcountError } from "../errors.js";
import { valueOf, type Store } from "./store.js";

const PREFIX = "answer/";
const MOST_ANSWERS = 1000;

/**
 * A client's memory in a store: a value gets the same answer throughout an epoch, so that repetition reveals nothing more.
 *
 * Anybody who reads the store can test guessed values with the memory, which is as private as all other data of the
 * origin.
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
   * Store an answer unless the key has one, and return the key's answer after it is stored durably.
   *
   * @throws HushcountError the answer cannot be stored, or the person opted out; in both cases the caller must not send
   * the answer.
   */
  keep(key: Uint8Array, answer: Uint8Array): Promise<Uint8Array> {
    const name = PREFIX + hex(key);
    return this.#store.change([name, { prefix: PREFIX, count: true }, BUDGET_KEY], ([found, count, budget]) => {
      // The opt-out deletes the answers, and no answer may be stored afterwards.
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
