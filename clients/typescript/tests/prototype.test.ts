/** Whatever another script of the page gives all objects, no option, file or record has it: only what is their own is read. */

import { readdirSync, readFileSync } from "node:fs";
import { IDBFactory, IDBKeyRange } from "fake-indexeddb";
import ts from "typescript";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Budget } from "../src/budget/budget.js";
import { hex, utf8 } from "../src/bytes.js";
import { Client } from "../src/client.js";
import { own } from "../src/own.js";
import { Sender } from "../src/sender/sender.js";
import { IndexedDbStore } from "../src/store/indexeddb-store.js";
import { MemoryStore } from "../src/store/memory-store.js";
import type { Store } from "../src/store/store.js";
import { Newest } from "../src/trust/newest.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector, readingOf, refusal } from "./fake-maker.js";
import { TERMS } from "./tabs.js";
import { vectors, type Entry } from "./vectors.js";

const SOURCE = new URL("../src/", import.meta.url);
const NOW = Date.parse("2026-11-23T12:00:00Z");
const CAMPAIGNS = [TERMS.campaign_id, ...vectors("campaigns").accept.map(({ file }) => file.id as string)];
/** The language itself reads these of every promise's result and of every property's description. */
const OF_THE_LANGUAGE = ["then", "get", "set", "value", "writable", "enumerable", "configurable"];

/** Return the names of options, and every name that the code reads of an object: of properties, of bindings, and texts like one. */
function namesInSource(): { readonly options: readonly string[]; readonly all: readonly string[] } {
  const [options, all] = [new Set<string>(), new Set<string>()];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertySignature(node) && node.questionToken !== undefined) options.add(node.name.getText());
    if (ts.isPropertyAccessExpression(node) || ts.isPropertySignature(node)) all.add(node.name.getText());
    else if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) all.add((node.propertyName ?? node.name).getText());
    else if (ts.isStringLiteral(node)) all.add(node.text);
    ts.forEachChild(node, visit);
  };
  for (const path of readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
    visit(ts.createSourceFile(path, readFileSync(new URL(path, SOURCE), "utf8"), ts.ScriptTarget.ES2022, true));
  }
  // Lines of a budget and of an allowance have computed names.
  for (const stream of ["reports", "discovery"]) for (const id of CAMPAIGNS) all.add(`${id}/${stream}`);
  const isPolluted = (name: string): boolean => /^[a-z_][\w./-]*$/i.test(name) && !(name in Object.prototype) && !OF_THE_LANGUAGE.includes(name);
  return { options: [...options].filter(isPolluted), all: [...all].filter(isPolluted) };
}

/** Give all objects these names while some work is done; `read` is told who reads one, and returns its value. */
async function polluted<Result>(names: readonly string[], read: (name: string, reader: unknown) => unknown, work: () => Promise<Result>): Promise<Result> {
  const descriptors = names.map((name) =>
    own({
      configurable: true,
      get(this: unknown) {
        return read(name, this);
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, own({ value, configurable: true, enumerable: true, writable: true }));
      },
    }),
  );
  names.forEach((name, place) => Object.defineProperty(Object.prototype, name, descriptors[place] as PropertyDescriptor));
  try {
    return await work();
  } finally {
    for (const name of names) delete (Object.prototype as Record<string, unknown>)[name];
  }
}

function nameOf(error: unknown): string {
  return (error as Error).name;
}

/** Make reports of the campaigns of the vectors, with what belongs to them. */
async function makeReports(): Promise<unknown> {
  const said: unknown[] = [];
  for (const { campaign: name, policy, at, signature, log } of vectors("policies").accept.map(own)) {
    vi.setSystemTime(Date.parse(at));
    const file = own((vectors("campaigns").accept.find((entry) => entry.name === name) as Entry).file as Entry);
    // Its dictionary lists bins.
    if (file.number !== undefined) continue;
    // With these bytes its sample does not ask this client.
    const asked = file.sample === undefined;
    const client = await Client.open({
      campaign: utf8(JSON.stringify(file)),
      policy: Policy.parse(policy, new Newest(new MemoryStore())),
      ...(signature && { signature: utf8(JSON.stringify(signature)) }),
      ...(log && { log: utf8(JSON.stringify(log)) }),
      ...(file.dictionary && { dictionary: utf8(["one", "two", "three", "größer"].map((item) => `${item}\n`).join("")) }),
      store: new MemoryStore(),
    });
    if (!asked) said.push(await client.report("one").then(hex, nameOf));
    if (asked && file.mechanism) said.push(hex(await client.report("one")), await client.report("two").then(hex, nameOf));
    if (asked && file.discovery?.hash === "keyed") said.push(hex(await client.discoveryReport("new")));
    if (asked && file.discovery?.hash === "oblivious") said.push(hex((await client.pendingDiscovery("new")).evaluation));
    const spent = await client.spent();
    said.push({ ...spent, words: spent.words() });
  }
  return said;
}

/** Deliver by senders, to a collector that does everything that one may do. */
async function deliver(store: Store): Promise<unknown> {
  const said: unknown[] = [];
  const requests: unknown[] = [];
  for (const evaluatorKey of [undefined, "e".repeat(64)]) {
    vi.setSystemTime(NOW);
    const collector = new FakeCollector();
    const fetch = (url: string, init: RequestInit): Promise<Response> => {
      requests.push(Object.getPrototypeOf(init));
      return collector.fetch(url, init);
    };
    const options = { site: "https://collector.example.com", policy: Policy.parse(TERMS, new Newest(store)), store, fetch, mostQueued: 6 };
    const sender = new Sender(options, () => readingOf(evaluatorKey === undefined ? {} : { evaluatorKey }));
    const keeping = new Sender({ ...options, delaySeconds: 0, keepValues: true }, () => readingOf());
    const answers = [undefined, () => refusal(503, "closed", { "Retry-After": "5" }), () => refusal(413, "too_long"), () => new Response(null, { status: 202 })];
    for (const answer of answers) {
      said.push(await sender.report("dark-mode"), sender.dropped);
      said.push((await sender.deliver()).sent);
      collector.answer = answer;
      const done = await sender.deliver(true);
      said.push({ ...done, heldUntil: done.heldUntil !== undefined });
      vi.setSystemTime(done.heldUntil ?? Date.now());
    }
    await keeping.report("light-mode");
    collector.epoch = 2;
    vi.setSystemTime(Date.now() + 86_400_000);
    said.push(await keeping.deliver(true), collector.arrived, collector.evaluations.length);
    said.push(sender.log.map(own).map(({ what, reason, stream }) => [what, reason, stream]), (await sender.spent()).words());
    await sender.forget();
    said.push(await sender.report("dark-mode"), sender.dropped);
    await new Budget(store).optIn();
  }
  // The browser reads the parts of a request that are not given through the prototype too.
  expect(new Set(requests)).toEqual(new Set([null]));
  return said;
}

/** Do all that with the same random bytes each time. */
async function everything(): Promise<unknown> {
  let drawn = 1;
  vi.spyOn(crypto, "getRandomValues").mockImplementation((array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let place = 0; place < bytes.length; place += 1) {
      drawn = (drawn * 48_271) % 2_147_483_647;
      bytes[place] = drawn >>> 8;
    }
    return array;
  });
  vi.stubGlobal("indexedDB", new IDBFactory());
  return [await makeReports(), await deliver(new MemoryStore()), await deliver(await IndexedDbStore.open())];
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.stubGlobal("IDBKeyRange", IDBKeyRange);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("no code of ours reads anything through the prototype of all objects", async () => {
  const { all } = namesInSource();
  const places = new Set<string>();
  const read = (name: string, reader: unknown): undefined => {
    // The third line is the caller of the property's function.
    const [, place] = (new Error().stack?.split("\n")[3] ?? "").split(SOURCE.pathname);
    // Whether the page has something is asked of its global object.
    if (place !== undefined && reader !== globalThis) places.add(`${name} at ${place}`);
  };
  const said = await polluted(all, read, everything);
  expect([...places]).toEqual([]);
  expect(said).toEqual(await everything());
});

test.each([7, true, () => 7])("no option and no field is %s because all objects have it", async (value) => {
  // Node's Response reads its own body so.
  const options = namesInSource().options.filter((name) => name !== "body");
  expect(options).toEqual(expect.arrayContaining(["delaySeconds", "windowSeconds", "keepValues", "random", "put", "delegation"]));
  const said = await polluted(options, () => value, everything);
  expect(said).toEqual(await everything());
});
