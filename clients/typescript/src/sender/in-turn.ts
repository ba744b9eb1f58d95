/** Groups calls that come close together, so that one step of the store does the work of many calls. */

import { StoreError } from "../errors.js";

interface Call<Value> {
  readonly value: Value;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Return a function that does `work` with the values of many calls together, at most `most`, one group after the other.
 *
 * If the work fails for a group, the work is tried with each half of the group, so that one bad value does not affect
 * other values. If the store fails, the whole group fails.
 */
export function inTurn<Value>(work: (values: readonly Value[]) => Promise<void>, most: number): (value: Value) => Promise<void> {
  const waiting: Call<Value>[] = [];
  let running = false;

  async function doGroup(calls: readonly Call<Value>[]): Promise<void> {
    try {
      await work(calls.map(({ value }) => value));
      for (const { resolve } of calls) resolve();
    } catch (error) {
      const half = Math.ceil(calls.length / 2);
      // If the store fails, all values fail: a retry might charge again for reports that were charged before.
      if (error instanceof StoreError) for (const { reject } of calls) reject(error);
      else if (calls.length > 1) {
        await doGroup(calls.slice(0, half));
        await doGroup(calls.slice(half));
      } else {
        calls[0]?.reject(error);
      }
    }
  }

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) await doGroup(waiting.splice(0, most));
    running = false;
  }

  return (value) =>
    new Promise((resolve, reject) => {
      waiting.push({ value, resolve, reject });
      if (!running) void run();
    });
}
