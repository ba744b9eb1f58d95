/** The browser's generator may have been replaced: one that draws nothing, or the same again, makes reports that tell all. */

import { readdirSync, readFileSync } from "node:fs";
import { afterEach, expect, test, vi } from "vitest";
import { utf8 } from "../src/bytes.js";
import { Client } from "../src/client.js";
import { HushcountError } from "../src/errors.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { Policy } from "../src/trust/policy.js";
import { FakeCollector } from "./fake-maker.js";
import { closeTabs, dump, tab } from "./tabs.js";
import { vectors } from "./vectors.js";

const FILE: unknown = vectors("campaigns").accept.find(({ name }) => name === "open-domain")?.file;
const draw = crypto.getRandomValues.bind(crypto);

type Fill = (bytes: Uint8Array) => void;

function replaced(fill: Fill): void {
  vi.spyOn(crypto, "getRandomValues").mockImplementation((array) => {
    fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  });
}

afterEach(() => {
  closeTabs();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const same = draw(new Uint8Array(1 << 16));
let draws = 0;
const BAD: readonly (readonly [string, Fill])[] = [
  ["fills nothing", () => undefined],
  ["fills the same each time", (bytes) => bytes.set(same.subarray(0, bytes.length))],
  ["alternates between two", (bytes) => bytes.set(same.subarray(1000 * (draws++ % 2)).subarray(0, bytes.length))],
  ["fills one byte only", (bytes) => draw(bytes.subarray(0, 1))],
  ["fills with numbers below 1", (bytes) => bytes.set(bytes.map(() => Math.random()))],
  ["fills with seven bits", (bytes) => draw(bytes).forEach((byte, place) => (bytes[place] = byte & 127))],
  ["fills with letters", (bytes) => draw(bytes).forEach((byte, place) => (bytes[place] = 97 + (byte % 26)))],
];

/** Expect that neither a client nor a sender begins, and that nothing is asked or kept. */
async function refused(): Promise<void> {
  const [store, collector] = [new MemoryStore(), new FakeCollector()];
  const campaign = utf8(JSON.stringify(FILE));
  await expect(Client.open({ campaign, policy: Policy.trusting(), store })).rejects.toThrow(HushcountError);
  await expect(Client.open({ campaign, policy: Policy.trusting(), store })).rejects.toThrow(/getRandomValues/);
  expect(() => tab({ store }, collector)).toThrow(/getRandomValues/);
  expect([collector.gets, await dump(store)]).toEqual([0, ""]);
}

test.each(BAD)("a generator that %s is refused at the start", async (_, fill) => {
  replaced(fill);
  await refused();
});

test("a page without a generator is refused at the start", async () => {
  vi.stubGlobal("crypto", undefined);
  await refused();
});

test("a generator that draws is not refused", () => {
  // It fails with probability below 300 / 2**110.
  for (let round = 0; round < 300; round += 1) tab();
});

test("all randomness comes through one door", () => {
  const source = new URL("../src/", import.meta.url);
  const paths = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  const doors = paths.filter((path) => /\bcrypto\.getRandomValues\(|randomUUID|Math\.random|generateKey/.test(readFileSync(new URL(path, source), "utf8")));
  expect(doors).toEqual(["maths/words.ts"]);
});
