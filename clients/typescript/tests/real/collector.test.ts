/** The client and a real collector, from Node and from a page in Chromium: every report arrives once and whole. */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import { chromium } from "playwright-core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Sender } from "../../src/sender/sender.js";
import { MemoryStore } from "../../src/store/memory-store.js";
import { Newest } from "../../src/trust/newest.js";
import { Policy } from "../../src/trust/policy.js";
import { startSite } from "../browser/servers.js";
import type { Tools } from "../browser/page.js";

declare const tools: Tools;

const ROOT = new URL("../../../../", import.meta.url).pathname;
const PYTHON = process.env.HUSHCOUNT_PYTHON ?? `${ROOT}.venv/bin/python`;
const CHROMIUM = process.env.HUSHCOUNT_CHROMIUM ?? "/usr/bin/chromium";
const VALUES = ["word-1", "word-2", "unknown", "é", "", "x".repeat(200), "word-1"];

if (!existsSync(PYTHON)) console.warn(`SKIPPED: ${PYTHON} is missing: nothing was sent to a real collector`);

describe.skipIf(!existsSync(PYTHON))("a real collector", { timeout: 120_000 }, () => {
  let served: ChildProcess;
  let lines: AsyncIterator<string>;
  let reader: Interface;
  let url: string;
  let policy: unknown;
  let metricsToken: string;

  async function nextLine(): Promise<any> {
    return JSON.parse((await lines.next()).value);
  }

  beforeEach(async () => {
    const env = { ...process.env, PYTHONPATH: ROOT };
    served = spawn(PYTHON, [`${ROOT}clients/typescript/tests/real/serve.py`], { env, stdio: ["pipe", "pipe", "inherit"] });
    reader = createInterface({ input: served.stdout! });
    lines = reader[Symbol.asyncIterator]();
    ({ url, policy, metricsToken } = await nextLine());
  }, 60_000);

  afterEach(() => {
    reader.close();
    served.stdin?.end();
  });

  /** Stop the collector, and return what it stored. */
  async function stored(): Promise<unknown> {
    served.stdin?.end();
    return nextLine();
  }

  /** Return how many reports the collector says that it has, of both streams. */
  async function acknowledged(): Promise<number> {
    const text = await (await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${metricsToken}` } })).text();
    const counts = Array.from(text.matchAll(/^\w+_reports_total\{.*\} (\S+)$/gm), ([, count]) => Number(count));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  test("takes the reports of two people from Node", async () => {
    for (let person = 0; person < 2; person += 1) {
      const store = new MemoryStore();
      const sender = new Sender({ site: url, policy: Policy.parse(policy, new Newest(store)), store, delaySeconds: 0 });
      await Promise.all(VALUES.map((value) => sender.report(value)));
      expect(await sender.deliver()).toMatchObject({ sent: 2 * VALUES.length, dropped: {}, waiting: 0 });
      expect((await sender.spent()).streams.map(({ reports }) => reports)).toEqual([VALUES.length, VALUES.length]);
      sender.close();
    }
    expect(await stored()).toEqual({ reports: 2 * VALUES.length, discovery: 2 * VALUES.length, clients: 2 });
  });

  test("refuses nothing that a page in Chromium sends, also when the page goes", async () => {
    if (!existsSync(CHROMIUM)) return;
    const site = await startSite(url);
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    const page = await (await browser.newContext()).newPage();
    await page.goto(site.address);
    const done = await page.evaluate(
      async ([address, terms, values]) => {
        const sender = await tools.openReal(address, terms);
        await Promise.all(values.map((value) => sender.report(value)));
        const delivery = await sender.deliver(true);
        const store = await tools.IndexedDbStore.open();
        const arrived = await store.change([{ prefix: "token/", most: 9 }], ([found = []]) => ({
          result: found.find(([key]) => key.endsWith("/arrived"))?.[1] as unknown as { readonly answered: number },
        }));
        sender.start();
        await Promise.all(values.map((value) => sender.report(value)));
        return { ...delivery, answered: arrived.answered };
      },
      [url, policy, VALUES] as const,
    );
    // A page can read the collector's Date: without it, no answer would be noted.
    expect(done).toMatchObject({ sent: 2 * VALUES.length, dropped: {}, waiting: 0, answered: expect.closeTo(Date.now(), -6) });
    await page.goto("about:blank");
    await vi.waitFor(async () => {
      expect(await acknowledged()).toBe(4 * VALUES.length);
    }, 30_000);
    await browser.close();
    site.close();
    expect(await stored()).toEqual({ reports: 2 * VALUES.length, discovery: 2 * VALUES.length, clients: 1 });
  });
});
