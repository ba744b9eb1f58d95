/** The sender in a real browser: tabs, a killed tab, a device that goes offline, a page that goes. */

import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { vectors, type Entry } from "../vectors.js";
import type { Tools } from "./page.js";
import { startCollector, startSite, type CollectorSite, type Site } from "./servers.js";

declare const tools: Tools;

const CHROMIUM = process.env.HUSHCOUNT_CHROMIUM ?? "/usr/bin/chromium";
const KEYS: unknown = vectors("policies").accept[0]?.policy.operator_keys;

const MISSING = !existsSync(CHROMIUM);
if (MISSING) console.warn(`SKIPPED: ${CHROMIUM} is missing: the sender was NOT run in a browser`);

describe.skipIf(MISSING)("in Chromium", { timeout: 60_000 }, () => {
  let browser: Browser;
  let site: Site;
  let served: CollectorSite;
  let context: BrowserContext;
  const faults: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    served = await startCollector();
    site = await startSite(served.address);
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    site?.close();
    served?.close();
  });

  beforeEach(async () => {
    context = await browser.newContext();
    served.collector.posts.length = 0;
    faults.length = 0;
  });

  afterEach(async () => {
    await context.close();
    // Among them, what the content security policy refused.
    expect(faults).toEqual([]);
  });

  async function newTab(): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) faults.push(message.text());
    });
    page.on("requestfailed", (request) => {
      if (request.resourceType() === "script") faults.push(`${request.url()}: ${request.failure()?.errorText ?? ""}`);
    });
    await page.goto(site.address);
    return page;
  }

  const given = (): readonly [string, unknown] => [served.address, KEYS];

  test("a report arrives across origins, under a strict content security policy", async () => {
    const page = await newTab();
    const done = await page.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, {});
        await sender.report("dark-mode");
        return sender.deliver();
      },
      given(),
    );
    expect(done).toMatchObject({ sent: 2, waiting: 0 });
    expect(served.collector.arrived).toEqual(["discovery dark-mode", "reports dark-mode"]);
    expect(served.preflights.length).toBeGreaterThan(0);
  });

  test("steps of two tabs never overlap", async () => {
    const tabs = [await newTab(), await newTab()];
    const count = (page: Page): Promise<void> =>
      page.evaluate(async () => {
        const store = await tools.IndexedDbStore.open();
        const step = (): Promise<void> =>
          store.change(["n"], ([found]) => ({ put: [["n", Number(found?.[0]?.[1] ?? 0) + 1]], result: undefined }));
        await Promise.all(Array.from({ length: 200 }, step));
      });
    await Promise.all(tabs.map(count));
    const total = await tabs[0]?.evaluate(async () =>
      (await tools.IndexedDbStore.open()).change(["n"], ([found]) => ({ result: found?.[0]?.[1] })),
    );
    expect(total).toBe(400);
  });

  test("a step that throws changes nothing, and a prefix finds its keys in order", async () => {
    const page = await newTab();
    const found = await page.evaluate(async () => {
      const store = await tools.IndexedDbStore.open();
      await store.change([], () => ({ put: [["a/2", 2], ["a/1", new Uint8Array([1])], ["b/1", 3]], result: undefined }));
      const fault = await store
        .change(["a/1"], () => {
          throw new RangeError("not this");
        })
        .catch((error: unknown) => String(error));
      const keys = await store.change(
        [{ prefix: "a/", most: 9 }, { prefix: "a/", most: 1, values: false }, { prefix: "a/", count: true }, "c"],
        (all) => ({ result: all.map((each) => each.map(([key, value]) => [key, String(value)])) }),
      );
      return { fault, keys };
    });
    expect(found.fault).toBe("RangeError: not this");
    expect(found.keys).toEqual([[["a/1", "1"], ["a/2", "2"]], [["a/1", "null"]], [["a/", "2"]], []]);
  });

  test("a store whose connection the browser closed goes on", async () => {
    const page = await newTab();
    const closed = page.evaluate(async () => {
      const store = await tools.IndexedDbStore.open();
      const add = (): Promise<number> =>
        store.change(["n"], ([found]) => {
          const next = Number(found?.[0]?.[1] ?? 0) + 1;
          return { put: [["n", next]], result: next };
        });
      Object.assign(globalThis, { add });
      return [await add(), await add()];
    });
    expect(await closed).toEqual([1, 2]);
    const devtools = await context.newCDPSession(page);
    await devtools.send("Storage.clearDataForOrigin", { origin: site.address, storageTypes: "indexeddb" });
    const after = await page.evaluate(async () => (globalThis as unknown as { add: () => Promise<number> }).add());
    expect(after).toBe(1);
  });

  test("two tabs neither charge twice nor send twice, and show one token", async () => {
    const tabs = [await newTab(), await newTab()];
    const work = (page: Page, name: number): Promise<number> =>
      page.evaluate(
        async ([address, keys, tab]) => {
          const { sender } = await tools.open(address, keys, { lifetime: 60 });
          await Promise.all(Array.from({ length: 30 }, (_, n) => sender.report(`${String(tab)}-${String(n)}`)));
          return (await sender.deliver()).sent;
        },
        [...given(), name] as const,
      );
    await Promise.all(tabs.map(work));
    const rest = await tabs[0]?.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, { lifetime: 60 });
        return { ...(await sender.deliver(true)), ...(await sender.spent()), words: undefined };
      },
      given(),
    );
    expect(rest?.waiting).toBe(0);
    expect(served.collector.arrived.length).toBe(120);
    expect(new Set(served.collector.posts.flatMap(({ texts }) => texts)).size).toBe(120);
    expect(new Set(served.collector.posts.map(({ token }) => token)).size).toBe(1);
    expect(rest?.epsilon).toBeLessThanOrEqual(60);
    expect(rest?.epsilon).toBeGreaterThan(57);
  });

  test("what a killed tab had queued is sent by the next one", async () => {
    const page = await newTab();
    await page.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, { delaySeconds: 600 });
        await Promise.all(["one", "two", "three"].map((value) => sender.report(value)));
      },
      given(),
    );
    // The process of the tab ends at once: no event of the page is heard.
    const crashed = page.waitForEvent("crash");
    await page.goto("chrome://crash").catch(() => undefined);
    await crashed;
    expect(served.collector.arrived).toEqual([]);
    const next = await newTab();
    const done = await next.evaluate(
      async ([address, keys]) => (await tools.open(address, keys, {})).sender.deliver(true),
      given(),
    );
    expect(done).toMatchObject({ sent: 6, waiting: 0 });
  });

  test("offline, reports wait; back online, they are sent without being asked", async () => {
    const page = await newTab();
    await page.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, {});
        await sender.report("before");
        Object.assign(globalThis, { sender: sender.start() });
      },
      given(),
    );
    await vi.waitFor(() => {
      expect(served.collector.arrived.length).toBe(2);
    }, 10_000);
    await context.setOffline(true);
    const waiting = await page.evaluate(async () => {
      const { sender } = globalThis as unknown as { sender: Awaited<ReturnType<Tools["open"]>>["sender"] };
      await sender.report("offline");
      return (await sender.deliver()).waiting;
    });
    expect(waiting).toBe(2);
    await context.setOffline(false);
    await vi.waitFor(() => {
      expect(served.collector.arrived.length).toBe(4);
    }, 40_000);
  });

  const goes = (page: Page): Promise<unknown> => page.goto("about:blank");
  const closes = (page: Page): Promise<unknown> => page.close({ runBeforeUnload: true });
  // A window of a second is over when the next page comes a second later, and one of 95 years is not.
  const over = [1, { sent: 0, dropped: { left_with_page: 6 }, waiting: 0 }] as const;
  const open = [3_000_000_000, { sent: 6, dropped: {}, waiting: 0 }] as const;
  test.each([
    ["goes to another page", goes, ...over],
    ["goes to another page", goes, ...open],
    ["is closed", closes, ...over],
    ["is closed", closes, ...open],
  ])("a page that %s sends what it queued, with the token", async (_, leave, windowSeconds, then) => {
    const page = await newTab();
    await page.evaluate(
      async ([address, keys, window]) => {
        const { sender } = await tools.open(address, keys, { delaySeconds: 86_400, windowSeconds: window });
        sender.start();
        await Promise.all(["one", "two", "three"].map((value) => sender.report(value)));
      },
      [...given(), windowSeconds] as const,
    );
    expect(served.collector.arrived).toEqual([]);
    // A page that goes slowly hears no answer either.
    let isGone: (gone: undefined) => void = () => undefined;
    served.gate = new Promise((resolve) => {
      isGone = resolve;
    });
    await leave(page);
    await vi.waitFor(() => {
      expect(served.collector.arrived.length).toBe(6);
    }, 20_000);
    for (const { token } of served.collector.posts) expect(token).toMatch(/^[\w-]{43}$/);
    // The page after it sends the same bytes again, and never others, only where they count once.
    const next = await newTab();
    // A browser may show another tab's notes a moment late.
    await next.waitForFunction(() => localStorage.length === 6);
    isGone(undefined);
    if (windowSeconds === 1) await new Promise((resolve) => setTimeout(resolve, 1000));
    const done = await next.evaluate(
      async ([address, keys, window]) => (await tools.open(address, keys, { windowSeconds: window })).sender.deliver(true),
      [...given(), windowSeconds] as const,
    );
    expect(done).toMatchObject(then);
    const posted = served.collector.posts.flatMap(({ texts }) => texts);
    expect([posted.length, new Set(posted).size]).toEqual([6 + then.sent, 6]);
    expect(await next.evaluate(() => localStorage.length)).toBe(0);
  });

  test("an opt-out in one tab silences the other, also when that one goes", async () => {
    const [one, two] = [await newTab(), await newTab()];
    await two.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, { delaySeconds: 600 });
        sender.start();
        await sender.report("dark-mode");
      },
      given(),
    );
    await one.evaluate(
      async ([address, keys]) => {
        await (await tools.open(address, keys, {})).sender.forget();
      },
      given(),
    );
    await two.goto("about:blank");
    const later = await one.evaluate(
      async ([address, keys]) => {
        const { sender } = await tools.open(address, keys, {});
        const refused = await sender.report("light-mode");
        return { refused, ...(await sender.deliver(true)) };
      },
      given(),
    );
    expect(later).toMatchObject({ refused: "opted_out", sent: 0, waiting: 0 });
    expect(served.collector.arrived).toEqual([]);
  });

  test("addresses have the texts of the vectors, with this browser's tables of domain names", async () => {
    const page = await newTab();
    const entries = [...vectors("urls").accept, ...vectors("urls").refuse.filter(({ reason }) => reason === "other")];
    const items = await page.evaluate((list) => tools.itemsOf(list), entries);
    expect(items).toEqual(entries.map(({ item }) => item ?? ""));
  });

  test("both ways to verify agree with the vectors", async () => {
    const page = await newTab();
    const entries = [...vectors("signatures").accept, ...vectors("signatures").refuse]
      .filter(({ rule, signature }) => rule === "bytes" && /^[0-9a-f]{128}$/.test(signature.signature))
      .filter(({ signed_bytes: bytes }) => bytes !== undefined)
      .map(({ keys, signature, signed_bytes: message }) => {
        const { key } = keys.find(({ id }: Entry) => id === signature.key_id);
        return [key, message, signature.signature] as readonly [string, string, string];
      });
    expect(entries.length).toBeGreaterThan(2);
    const said = await page.evaluate(async (list) => {
      const both = list.map(async ([key, message, signature]) => {
        const bytes = [tools.unhex(key), tools.unhex(message), tools.unhex(signature)] as const;
        const altered = bytes[2].map((byte, place) => (place === 7 ? byte ^ 1 : byte));
        return [
          await tools.verifyNatively(...bytes),
          await tools.verifyPortably(...bytes),
          await tools.verifyNatively(bytes[0], bytes[1], altered),
          await tools.verifyPortably(bytes[0], bytes[1], altered),
        ];
      });
      return Promise.all(both);
    }, entries);
    for (const each of said) expect(each).toEqual([each[0] === undefined ? undefined : true, true, each[2] === undefined ? undefined : false, false]);
  });
});
