/** All that a client sends over ten windows to two collectors: no two tokens have anything in common. */

import { expect, test, vi } from "vitest";
import { freshBytes } from "../src/maths/words.js";
import type { Reading } from "../src/sender/present.js";
import { MemoryStore } from "../src/store/memory-store.js";
import { FakeCollector, readingOf } from "./fake-maker.js";
import { eachBeginsAt, tab } from "./tabs.js";

const START = Date.parse("2026-11-23T12:00:00Z");
const DAY = 86_400_000;
const WINDOWS = 10;
const LENGTH = 8;

eachBeginsAt(START);

/** Return a reading whose makers seal nothing but random bytes. */
function randomly(): Reading {
  const reading = readingOf({ collectors: ["one", "two"] });
  const sealed = (): Promise<Uint8Array> => Promise.resolve(freshBytes(64));
  const open: Reading["open"] = async (publication) => ({ ...(await reading.open(publication)), report: sealed, discoveryReport: sealed });
  return { ...reading, open };
}

/** Return the lines of a request, names and values of headers apart, and its body with a letter for each byte. */
function linesOf(url: string, init: RequestInit): readonly string[] {
  const body = String.fromCharCode(...((init.body ?? new Uint8Array()) as Uint8Array));
  return [String(init.method), new URL(url).pathname, new URL(url).search, ...[...new Headers(init.headers)].flat(), body];
}

function parts(lines: readonly string[]): Set<string> {
  return new Set(lines.flatMap((line) => Array.from(line.slice(LENGTH - 1), (_, start) => line.slice(start, start + LENGTH))));
}

/** Let a client report to both collectors in each window; return all lines that it sent under each token, or under none. */
async function sentOf(): Promise<Map<string, string[]>> {
  const [store, sent] = [new MemoryStore(), new Map<string, string[]>()];
  for (let window = 0; window < WINDOWS; window += 1) {
    vi.setSystemTime(START + window * DAY);
    for (const siteName of ["one", "two"]) {
      const collector = new FakeCollector();
      const fetch = (url: string, init: RequestInit): Promise<Response> => {
        const name = `${siteName} ${String(window)} ${new Headers(init.headers).get("client-token") ?? ""}`;
        sent.set(name, [...(sent.get(name) ?? []), ...linesOf(url, init)]);
        return collector.fetch(url, init);
      };
      const { sender } = tab({ store, siteName, fetch }, collector, randomly());
      expect(await sender.report("one")).toBe("queued");
      expect((await sender.deliver()).sent).toBe(2);
      sender.close();
    }
  }
  return sent;
}

test("no two windows and no two collectors see eight equal bytes that another client's traffic lacks", async () => {
  const theirs = parts([...(await sentOf()).values()].flat());
  const own = [...(await sentOf())].map(([name, lines]) => [name, parts(lines)] as const);
  const tokens = own.map(([name]) => name.split(" ")[2] ?? "").filter((token) => token !== "");
  expect([tokens.length, new Set(tokens).size]).toEqual([2 * WINDOWS, 2 * WINDOWS]);
  const seen = new Map<string, string>();
  for (const [name, pieces] of own) {
    for (const piece of pieces) {
      if (theirs.has(piece)) continue;
      expect([piece, seen.get(piece)]).toEqual([piece, undefined]);
      seen.set(piece, name);
    }
  }
  // The search sees tokens.
  expect(tokens.every((token) => seen.has(token.slice(0, LENGTH)))).toBe(true);
});

test("a campaign of several collectors gets nothing until the app names the site", async () => {
  for (const siteName of [undefined, "three"]) {
    const { sender, collector } = tab({ siteName } as object, new FakeCollector(), randomly());
    expect(await sender.report("one")).toBe("untrusted");
    expect((await sender.deliver(true)).sent).toBe(0);
    expect(collector.posts).toEqual([]);
    expect(sender.log.at(-1)?.reason).toMatch(/siteName .*one, two/);
  }
});
