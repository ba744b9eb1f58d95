/** A folder of records: processes take turns, a kill at any call loses no result, and damage never begins a budget anew. */

import { spawn, spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Budget } from "../../src/budget/budget.js";
import { StoreError } from "../../src/errors.js";
import { FileStore } from "../../src/node/file-store.js";
import { FakeCollector } from "../fake-maker.js";
import { closeTabs, tab } from "../tabs.js";

let home: string;
let script: string;
let folder: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "hushcount-"));
  script = join(home, "process.mjs");
  const entryPoints = [new URL("process.ts", import.meta.url).pathname];
  await build({ entryPoints, bundle: true, platform: "node", format: "esm", outfile: script });
});

afterAll(async () => {
  await rm(home, { recursive: true });
});

beforeEach(async () => {
  folder = join(await mkdtemp(join(home, "of-")), "person");
});

afterEach(closeTabs);

/** Run a process; return its lines, and whether it was killed. */
function run(what: string, times: number, env: Record<string, string> = {}, prefix: readonly string[] = []): Promise<{ lines: string[]; killed: boolean }> {
  const [program = "", ...words] = [...prefix, process.execPath, script, folder, what, String(times)];
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (piece: Buffer) => (text += piece.toString()));
    child.on("close", (code, signal) => {
      if (code !== 0 && signal !== "SIGKILL") reject(new Error(`a process ended with ${String(code)}: ${text}`));
      else resolve({ lines: text.split("\n").filter(Boolean), killed: signal === "SIGKILL" });
    });
  });
}

function acknowledged(lines: readonly string[]): number[] {
  return lines.filter((line) => line.startsWith("added ")).map((line) => Number(line.slice("added ".length)));
}

function add(store: FileStore): Promise<number> {
  return store.change(["n"], ([found]) => {
    const next = Number(found?.[0]?.[1] ?? 0) + 1;
    return { put: [["n", next]], result: next };
  });
}

async function read(from = folder): Promise<number> {
  return (await FileStore.open(from)).change(["n"], ([found]) => ({ result: Number(found?.[0]?.[1] ?? 0) }));
}

/** Return how many calls of the file system two steps are. */
async function calls(): Promise<number> {
  const { lines } = await run("add", 2, { TRACE: "1" });
  const number = lines.length - acknowledged(lines).length;
  expect(number).toBeGreaterThan(40);
  return number;
}

/** The paths of all files of the folder, sorted. */
async function paths(): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort();
}

describe("processes", () => {
  test("take turns, also at the first step, and each result is one process's", async () => {
    const here = Promise.all(
      Array.from({ length: 10 }, async () => add(await FileStore.open(folder))),
    );
    const [mine, ...theirs] = await Promise.all([here, ...Array.from({ length: 3 }, () => run("add", 20))]);
    const all = [...mine, ...theirs.flatMap(({ lines }) => acknowledged(lines))];
    expect(all.sort((one, other) => one - other)).toEqual(Array.from({ length: 70 }, (_, place) => place + 1));
    expect(await read()).toBe(70);
    expect((await paths()).length).toBe(2);
  });

  test("that are killed at any call lose no result, change nothing by halves, and hold nothing up", { timeout: 300_000 }, async () => {
    for (let at = await calls(); at > 0; at -= 1) {
      await rm(folder, { recursive: true, force: true });
      const { lines, killed } = await run("add", 2, { KILL_AT: String(at) });
      expect(killed).toBe(true);
      const last = acknowledged(lines).at(-1) ?? 0;
      const now = await read();
      expect([last, last + 1], `killed at call ${String(at)}`).toContain(now);
      expect(await add(await FileStore.open(folder))).toBe(now + 1);
      const kept = (await paths()).filter((path) => path.includes("/records/"));
      expect(kept.length, "what a killed process left is removed").toBe(2);
    }
  });

  test("that find the device full at any call say so, and lose and invent nothing", async () => {
    const { lines } = await run("full", 2);
    expect(lines.length).toBeGreaterThan(2 * (await calls()));
    for (let at = 1; 2 * at <= lines.length; at += 1) {
      const two = lines.slice(2 * at - 2, 2 * at);
      const steps = acknowledged(two);
      const failed = two.filter((line) => /^StoreError.*ENOSPC.*free space/.test(line));
      expect(steps.length + failed.length).toBe(2);
      // Only old files that cannot be removed stop no step.
      if (failed.length === 0) expect(steps).toEqual([1, 2]);
      expect([steps.at(-1), Number(steps.at(-1)) + 1]).toContain(await read(`${folder}-${String(at)}`));
    }
  });

  test("acknowledge a step only after its records and their name are on the disk", async () => {
    await run("add", 1);
    const { lines } = await run("add", 1, { TRACE: "1" });
    const [written, synced, renamed, named, added] = ["write data", "sync data", "rename now", "sync records", "added 2"].map((line) => lines.lastIndexOf(line));
    const order = [written, synced, renamed, named, added];
    expect(order).toEqual([...order].sort((one, other) => Number(one) - Number(other)));
    expect(written).toBeGreaterThan(-1);
    // Another process may have been killed before it synced the name.
    const { lines: reading } = await run("read", 1, { TRACE: "1" });
    expect(reading.filter((line) => /^sync|^found/.test(line))).toEqual(["sync records", "found 2"]);
  });

  test("on a full device of their own are told to free space, and go on after that", async () => {
    const own = ["unshare", "--mount", "sh", "-c", 'mkdir -p "$2" && mount -t tmpfs -o size=96k,mode=700 none "$2" && "$0" "$@" && exec "$0" "$1" "$2" read 1'];
    if (spawnSync("unshare", ["--mount", "true"]).status !== 0) {
      console.warn("SKIPPED: no device of its own can be mounted here: only simulated full devices were tried");
      return;
    }
    const { lines } = await run("fill", 30, {}, own);
    const steps = acknowledged(lines);
    expect(steps.length).toBeGreaterThan(3);
    expect(lines.filter((line) => /ENOSPC.*free space/.test(line)).length).toBe(30 - steps.length);
    expect(lines.at(-1)).toBe(`found ${String(steps.length)}`);
  });
});

describe("a folder", () => {
  test("is its user's alone", async () => {
    await add(await FileStore.open(folder));
    const modes = await Promise.all([folder, join(folder, "records"), ...(await paths())].map(async (path) => (await stat(path)).mode & 0o777));
    expect(modes).toEqual([0o700, 0o700, 0o600, 0o600]);
    await chmod(join(folder, "records"), 0o750);
    await expect(FileStore.open(folder)).rejects.toThrow(/0750, must be 0700: chmod 700 /);
  });

  test("that cannot be made is named, with the system's reason", async () => {
    await writeFile(join(home, "file"), "");
    const opened = FileStore.open(join(home, "file", "person"));
    await expect(opened).rejects.toThrow(StoreError);
    await expect(opened).rejects.toThrow(/file\/person.*ENOTDIR/);
  });

  test("with damage is refused, and left as it is", async () => {
    await add(await FileStore.open(folder));
    const [data = "", now = ""] = await paths();
    const whole = await readFile(data);
    const flipped = Array.from({ length: whole.length }, (_, at) => whole.map((byte, place) => (place === at ? byte ^ 4 : byte)));
    const cut = [0, 1, 19, 20, 51, 52, whole.length - 1].map((length) => whole.subarray(0, length));
    for (const content of [...flipped, ...cut, Buffer.concat([whole, Buffer.from("\n")])]) {
      await writeFile(data, content);
      await expect(FileStore.open(folder)).rejects.toThrow(/damaged.*restore the newest copy/);
      expect(Buffer.compare(await readFile(data), content)).toBe(0);
    }
    await truncate(data, 2 ** 36);
    await expect(FileStore.open(folder)).rejects.toThrow(/damaged.*restore/);
    await rm(data);
    await expect(FileStore.open(folder)).rejects.toThrow(/missing.*restore/);
    spawnSync("mkfifo", [data]);
    await expect(FileStore.open(folder)).rejects.toThrow(/damaged.*restore/);
    await rm(data);
    await writeFile(data, whole);
    expect(await read()).toBe(1);
    await rm(now);
    await expect(FileStore.open(folder)).rejects.toThrow(/missing.*restore/);
    await rm(data);
    await expect(FileStore.open(folder)).rejects.toThrow(/missing.*restore/);
  });

  test("that is damaged under an open store stops its next step", async () => {
    const store = await FileStore.open(folder);
    await add(store);
    await add(await FileStore.open(folder));
    const [data = ""] = await paths();
    await writeFile(data, "");
    await expect(add(store)).rejects.toThrow(/damaged/);
    await rm(folder, { recursive: true });
    await expect(add(store)).rejects.toThrow(/ENOENT/);
  });

  test("that the app has already, with files of its own, is used", async () => {
    await mkdir(folder, { mode: 0o755 });
    await writeFile(join(folder, "settings.json"), "{}");
    expect(await add(await FileStore.open(folder))).toBe(1);
    expect(await readFile(join(folder, "settings.json"), "utf8")).toBe("{}");
  });

  test("that others can write to is refused, because they could put other records there", async () => {
    await add(await FileStore.open(folder));
    await chmod(folder, 0o777);
    await expect(FileStore.open(folder)).rejects.toThrow(/0777/);
    await chmod(folder, 0o755);
    expect(await add(await FileStore.open(folder))).toBe(2);
  });
});

describe("a sender", () => {
  test("goes on in the next process: its reports, budget and token are there", async () => {
    const collector = new FakeCollector();
    const sender = async (delaySeconds: number) => {
      const store = await FileStore.open(folder);
      return tab({ store, delaySeconds, budget: new Budget(store, { lifetime: 6 }) }, collector).sender;
    };
    const one = await sender(600);
    expect(await Promise.all([one.report("dark-mode"), one.report("light-mode")])).toEqual(["queued", "queued"]);
    one.close();
    const two = await sender(0);
    expect(await two.report("late")).toBe("queued");
    expect(await two.deliver(true)).toMatchObject({ sent: 6, waiting: 0 });
    // The budget of 6 is spent by two values of 3.
    expect(collector.arrived).toEqual(["discovery NOTHING", "discovery dark-mode", "discovery light-mode", "reports NOTHING", "reports dark-mode", "reports light-mode"]);
    expect(new Set(collector.posts.map(({ token }) => token)).size).toBe(1);
  });

  test("that forgets leaves no value, report and token in any file", async () => {
    const store = await FileStore.open(folder);
    const { sender } = tab({ store, keepValues: true, delaySeconds: 600 });
    await sender.report("dark-mode");
    const texts = async (): Promise<string> => (await Promise.all((await paths()).map((path) => readFile(path, "latin1")))).join();
    expect(await texts()).toMatch(/token\/[^]*queue\/[^]*dark-mode/);
    await sender.forget();
    expect(await texts()).not.toMatch(/dark-mode|queue\/|token\//);
    expect(await tab({ store: await FileStore.open(folder) }).sender.report("dark-mode")).toBe("opted_out");
  });

  test("without room on the device tells the app, and charges nothing that is not kept", async () => {
    const { sender } = tab({ store: await FileStore.open(folder) });
    await sender.report("one");
    await rm(folder, { recursive: true });
    expect([await sender.report("two"), sender.dropped]).toEqual(["storage", { storage: 1 }]);
  });
});
