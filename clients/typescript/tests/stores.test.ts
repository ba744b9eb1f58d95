/** What every store keeps to: in memory, in a browser's database, and in a folder. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IDBFactory, IDBKeyRange } from "fake-indexeddb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StoreError } from "../src/errors.js";
import { FileStore } from "../src/node/file-store.js";
import { IndexedDbStore } from "../src/store/indexeddb-store.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Entry, Store, Value, Wanted } from "../src/store/store.js";

let folder: string;

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  MemoryStore: () => Promise.resolve(new MemoryStore()),
  IndexedDbStore: () => IndexedDbStore.open(),
  FileStore: () => FileStore.open(folder),
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "hushcount-"));
  vi.stubGlobal("indexedDB", new IDBFactory());
  vi.stubGlobal("IDBKeyRange", IDBKeyRange);
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await rm(folder, { recursive: true });
});

describe.each(Object.entries(STORES))("%s", (name, open) => {
  let store: Store;

  beforeEach(async () => {
    store = await open();
  });

  afterEach(() => {
    store.close();
  });

  const put = (entries: readonly Entry[], remove: readonly string[] = []): Promise<void> =>
    store.change([], () => ({ put: entries, remove, result: undefined }));
  const read = (...wanted: readonly Wanted[]): Promise<readonly (readonly Entry[])[]> => store.change(wanted, (found) => ({ result: found }));

  test("keeps every kind of value, and gives each reader a copy", async () => {
    const value: Value = { none: null, yes: true, n: -0.5, much: Infinity, text: "é\0\ud800", bytes: Uint8Array.of(0, 255), list: [[], { a: 1 }, ""] };
    await put([["v", value]]);
    const [[one]] = (await read("v")) as [[Entry]];
    expect(one).toEqual(["v", value]);
    expect(Object.getPrototypeOf((one[1] as { bytes: object }).bytes)).toBe(Uint8Array.prototype);
    Object.assign(one[1] as object, { n: 7 });
    (one[1] as { bytes: Uint8Array }).bytes[0] = 7;
    expect((await read("v"))[0]).toEqual([["v", value]]);
  });

  test("reads one key, a range in order, its beginning, its keys, and its number", async () => {
    await put([["a/3", 3], ["a/1", 1], ["b/1", 9], ["a/2", 2], ["a", 0], ["a/10", 10]]);
    expect(await read("a/1", "none", { prefix: "a/" }, { prefix: "a/", most: 2 }, { prefix: "a/", most: 2, values: false }, { prefix: "a/", count: true }, { prefix: "c" })).toEqual([
      [["a/1", 1]],
      [],
      [["a/1", 1], ["a/10", 10], ["a/2", 2], ["a/3", 3]],
      [["a/1", 1], ["a/10", 10]],
      [["a/1", null], ["a/10", null]],
      [["a/", 4]],
      [],
    ]);
  });

  test("replaces and removes, and puts what one step both removes and puts", async () => {
    await put([["a", 1], ["b", 2]]);
    await put([["a", 3], ["c", 4]], ["b", "c", "none"]);
    expect(await read({ prefix: "" })).toEqual([[["a", 3], ["c", 4]]]);
  });

  test("does steps one after the other", async () => {
    const add = (): Promise<number> =>
      store.change(["n"], ([found]) => {
        const next = Number(found?.[0]?.[1] ?? 0) + 1;
        return { put: [["n", next]], result: next };
      });
    const all = await Promise.all(Array.from({ length: 30 }, add));
    expect(all).toEqual(Array.from({ length: 30 }, (_, place) => place + 1));
  });

  test("writes nothing of a step that throws, and goes on", async () => {
    await put([["a", 1]]);
    await expect(
      store.change(["a"], () => {
        throw new RangeError("not this");
      }),
    ).rejects.toThrow(RangeError);
    expect(await read("a")).toEqual([[["a", 1]]]);
  });

  test.skipIf(name === "MemoryStore")("keeps its records after it was closed, and refuses steps", async () => {
    await put([["a", 1]]);
    store.close();
    await expect(read("a")).rejects.toThrow(StoreError);
    store = await open();
    expect(await read("a")).toEqual([[["a", 1]]]);
  });
});
