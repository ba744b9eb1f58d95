/** What a client finds out before it charges a report, and before it knows a value. */

import { afterEach, expect, test, vi } from "vitest";
import { blake2b, hex, utf8 } from "../src/bytes.js";
import { Client } from "../src/client.js";
import { FormatError, UsageError } from "../src/errors.js";
import { readCampaign } from "../src/testing.js";
import { Policy } from "../src/trust/policy.js";
import { vectors, type Entry } from "./vectors.js";

const loads = vi.hoisted(() => ({ number: 0 }));

vi.mock("../src/values/unassigned.js", async (original) => {
  loads.number += 1;
  return original();
});

function fileOf(name: string): Entry {
  const entry = vectors("campaigns").accept.find((each) => each.name === name) as Entry;
  return structuredClone(entry.file) as Entry;
}

function clientOf(file: Entry, windowSeconds?: number): Promise<Client> {
  const window = windowSeconds === undefined ? {} : { windowSeconds };
  return Client.open({ campaign: utf8(JSON.stringify(file)), policy: Policy.trusting(), ...window });
}

afterEach(() => {
  vi.useRealTimers();
});

test("what a page loads does not depend on values", async () => {
  await clientOf(fileOf("open-domain"));
  expect(loads.number).toBe(1);
});

test.each(["reports", "discovery"] as const)("with a key that is not valid now, %s are not charged", async (stream) => {
  const client = await clientOf(fileOf("open-domain"));
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2121-01-01T00:00:00Z") });
  const made = stream === "reports" ? client.report("dark-mode") : client.discoveryReport("dark-mode");
  await expect(made).rejects.toThrow(UsageError);
  expect((await client.spent()).epsilon).toBe(0);
});

test("a key that nothing can be sealed to is refused before anything is charged", async () => {
  const file = fileOf("open-domain");
  const key = new Uint8Array(32);
  Object.assign(file.keys.analyzer[0], { key: hex(key), id: hex(blake2b(key, { length: 8 })) });
  await expect(clientOf(file)).rejects.toThrow(/not a valid X25519 public key/);
});

test.each([0, -1, NaN, Infinity])("windows of %d seconds are none", async (windowSeconds) => {
  await expect(clientOf(fileOf("open-domain"), windowSeconds)).rejects.toThrow(/windowSeconds/);
});

test.each([
  "2026-02-30T00:00:00Z",
  "2025-02-29T00:00:00Z",
  "2026-04-31T00:00:00Z",
  "2026-06-01T24:00:00Z",
  "2026-06-01T00:00:00+24:00",
  "0000-06-01T00:00:00Z",
])("%s is no time", (time) => {
  const file = fileOf("open-domain");
  file.keys.analyzer[0].not_before = time;
  expect(() => readCampaign(utf8(JSON.stringify(file)))).toThrow(FormatError);
});

test("a time with an offset is one, also on the first day of a year", () => {
  const file = fileOf("open-domain");
  file.keys.analyzer[0].not_before = "2024-02-29T23:30:00-05:30";
  file.keys.analyzer[0].not_after = "2027-01-01T00:00:00+14:00";
  expect(readCampaign(utf8(JSON.stringify(file))).keys.analyzer.notBefore).toBe(Date.parse("2024-03-01T05:00:00Z"));
});

test("a seed must be text", () => {
  const file = fileOf("sketch");
  file.mechanism.parameters.seed = [file.mechanism.parameters.seed];
  expect(() => readCampaign(utf8(JSON.stringify(file)))).toThrow(FormatError);
});

test("a file's name may have 128 characters of any plane", () => {
  const file = fileOf("grr");
  file.dictionary.path = "😀".repeat(128);
  expect(() => readCampaign(utf8(JSON.stringify(file)))).not.toThrow();
  file.dictionary.path += "a";
  expect(() => readCampaign(utf8(JSON.stringify(file)))).toThrow(FormatError);
});
