/** The database of an origin: a browser may close its connection at any moment, or have no room, or keep nothing. */

import { IDBDatabase as FakeDatabase, IDBFactory, IDBKeyRange, IDBObjectStore as FakeObjectStore, forceCloseDatabase } from "fake-indexeddb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StoreError } from "../src/errors.js";
import { IndexedDbStore } from "../src/store/indexeddb-store.js";
import { FakeCollector } from "./fake-maker.js";
import { closeTabs, tab } from "./tabs.js";

/** The connections that were opened, the newest last. */
let connections: IDBDatabase[];

beforeEach(() => {
  connections = [];
  const factory = new IDBFactory();
  const open = factory.open.bind(factory);
  factory.open = (...given) => {
    const request = open(...given);
    request.addEventListener("success", () => connections.push(request.result));
    return request;
  };
  vi.stubGlobal("indexedDB", factory);
  vi.stubGlobal("IDBKeyRange", IDBKeyRange);
});

afterEach(() => {
  closeTabs();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

function add(store: IndexedDbStore): Promise<number> {
  return store.change(["n"], ([found]) => {
    const next = Number(found?.[0]?.[1] ?? 0) + 1;
    return { put: [["n", next]], result: next };
  });
}

/** Close the newest connection as a browser does that needs the memory. */
function lose(): void {
  forceCloseDatabase(connections.at(-1) as never);
}

/** The sentence of a refusal by the store. */
async function refused(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StoreError);
  return (error as Error).message;
}

test("a connection that the browser closed is opened again, and what was written is there", async () => {
  const store = await IndexedDbStore.open();
  for (const next of [1, 2, 3]) {
    expect(await add(store)).toBe(next);
    lose();
  }
  expect(connections.length).toBe(3);
});

test("steps that come together after the connection was closed share one that is new", async () => {
  const store = await IndexedDbStore.open();
  lose();
  const all = await Promise.all(Array.from({ length: 20 }, () => add(store)));
  expect(all).toEqual(Array.from({ length: 20 }, (_, place) => place + 1));
  expect(connections.length).toBe(2);
});

test("a step that the browser aborts as it closes the connection is done once", async () => {
  const store = await IndexedDbStore.open();
  let aborted = false;
  const step = store.change(["n"], ([found]) => {
    if (!aborted) {
      aborted = true;
      const lost = connections.at(-1) as unknown as { _rawDatabase: { transactions: { _state: string; _abort(name: string): void }[] } };
      for (const each of lost._rawDatabase.transactions) if (each._state !== "finished") each._abort("AbortError");
      lose();
    }
    return { put: [["n", Number(found?.[0]?.[1] ?? 0) + 1]], result: undefined };
  });
  await step;
  expect(aborted).toBe(true);
  expect(await add(store)).toBe(2);
});

test("another tab may delete the database, and this one begins a new one", async () => {
  const store = await IndexedDbStore.open();
  await add(store);
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase("hushcount");
    request.onsuccess = resolve;
    request.onblocked = reject;
  });
  expect(await add(store)).toBe(1);
});

test("a step's own error is not tried again, and changes nothing", async () => {
  const store = await IndexedDbStore.open();
  let steps = 0;
  const work = store.change(["n"], () => {
    steps += 1;
    throw new RangeError("not this");
  });
  await expect(work).rejects.toThrow(RangeError);
  expect([steps, connections.length, await add(store)]).toEqual([1, 1, 1]);
});

test("only a full store advises to free space", async () => {
  const store = await IndexedDbStore.open();
  const put = vi.spyOn(FakeObjectStore.prototype, "put");
  put.mockImplementation(() => {
    throw new DOMException("", "QuotaExceededError");
  });
  expect(await refused(add(store))).toMatch(/QuotaExceededError.*free space/);
  expect([put.mock.calls.length, connections.length]).toEqual([1, 1]);
  put.mockRestore();
  const begin = vi.spyOn(FakeDatabase.prototype, "transaction");
  for (const name of ["InvalidStateError", "UnknownError", "AbortError", "SecurityError"]) {
    begin.mockImplementation(() => {
      throw new DOMException("", name);
    });
    const said = await refused(add(store));
    expect(said).toContain(name);
    expect(said).not.toContain("free space");
  }
  begin.mockRestore();
  expect(await add(store)).toBe(1);
});

test("a database of a newer version of the app is left alone, and its name said", async () => {
  const store = await IndexedDbStore.open();
  await new Promise((resolve) => {
    indexedDB.open("hushcount", 2).onsuccess = resolve;
  });
  const said = await refused(add(store));
  expect(said).toMatch(/VersionError/);
  expect(said).not.toContain("free space");
  await expect(IndexedDbStore.open()).rejects.toThrow(StoreError);
});

test("a store asks not to be evicted, and whatever the browser says of it is open", async () => {
  const forbidden = (): never => {
    throw new DOMException("", "SecurityError");
  };
  const answers = [() => Promise.resolve(false), () => Promise.reject(new TypeError()), forbidden, () => new Promise(() => undefined)];
  for (const persist of answers.map((answer) => vi.fn(answer))) {
    vi.stubGlobal("navigator", { storage: { persist } });
    await add(await IndexedDbStore.open());
    expect(persist).toHaveBeenCalledTimes(1);
  }
  for (const without of [{ storage: {} }, {}, undefined]) {
    vi.stubGlobal("navigator", without);
    await add(await IndexedDbStore.open());
  }
});

test("a store that the app closed stays so", async () => {
  const store = await IndexedDbStore.open();
  store.close();
  expect(await refused(add(store))).not.toContain("free space");
  expect(connections.length).toBe(1);
});

test("a sender goes on after its connection was closed at any moment", async () => {
  const collector = new FakeCollector();
  const { sender } = tab({ store: await IndexedDbStore.open() }, collector);
  for (const value of ["one", "two", "three"]) {
    lose();
    await sender.report(value);
    lose();
    await sender.deliver();
  }
  expect(collector.arrived.length).toBe(6);
});
