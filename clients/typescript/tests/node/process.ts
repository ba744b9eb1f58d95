/**
 * A process of the tests of FileStore. It does the steps of its arguments on a folder, and prints a line for each result.
 *
 * KILL_AT of its environment is the number of the call of the file system at which it ends as by kill -9. In the step
 * "full", each call in turn finds the device full, in a folder of its own. A write is then half done. TRACE prints the
 * calls.
 */

import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";
import { HushcountError } from "../../src/errors.js";
import { FileStore } from "../../src/node/file-store.js";

type Call = (...given: any[]) => Promise<any>;

const { KILL_AT, TRACE } = process.env;
let calls = 0;
let fullAt = 0;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Return what a file is, from its name. */
function kindOf(path: string): string {
  return basename(path).replace(/-.*/, "");
}

/** Wrap a call; `half` does a part of it. */
function faulty(name: string, call: Call, half: Call = () => Promise.resolve()): Call {
  return async (...given) => {
    calls += 1;
    if (TRACE !== undefined) say(typeof given[0] === "string" ? `${name} ${kindOf(given[0])}` : name);
    if (String(calls) === KILL_AT) {
      await half(...given);
      process.kill(process.pid, "SIGKILL");
    }
    if (calls === fullAt) {
      await half(...given);
      throw Object.assign(new Error("the device is full"), { code: "ENOSPC" });
    }
    return call(...given);
  };
}

const promises = files as unknown as Record<string, Call>;
for (const name of ["mkdir", "readdir", "rename", "rm", "stat"]) promises[name] = faulty(name, promises[name]!);
const open = promises.open!;
promises.open = faulty("open", async (path, ...given) => {
  const file = await open(path, ...given);
  const at = kindOf(path);
  for (const name of ["sync", "read"]) file[name] = faulty(`${name} ${at}`, file[name].bind(file));
  const write = file.writeFile.bind(file);
  file.writeFile = faulty(`write ${at}`, (bytes) => write(bytes), (bytes) => write(bytes.subarray(0, bytes.length / 2)));
  return file;
});
syncBuiltinESMExports();

function add(store: FileStore, more: readonly [string, Uint8Array][] = []): Promise<number> {
  return store.change(["n"], ([found]) => {
    const next = Number(found?.[0]?.[1] ?? 0) + 1;
    return { put: [["n", next], ...more], result: next };
  });
}

async function steps(folder: string, what: string, times: number): Promise<void> {
  for (let step = 0; step < times; step += 1) {
    try {
      const store = await FileStore.open(folder);
      if (what === "add") say(`added ${String(await add(store))}`);
      else if (what === "fill") say(`added ${String(await add(store, [[`more/${String(step)}`, new Uint8Array(4096)]]))}`);
      else say(`found ${String(await store.change(["n"], ([found]) => ({ result: found?.[0]?.[1] ?? 0 })))}`);
    } catch (error) {
      if (!(error instanceof HushcountError)) throw error;
      say(`${error.name}: ${error.message}`);
    }
  }
}

const [, , folder = "", what = "", times] = process.argv;
if (what === "full") {
  do {
    calls = 0;
    fullAt += 1;
    await steps(`${folder}-${String(fullAt)}`, "add", Number(times));
  } while (calls >= fullAt);
} else await steps(folder, what, Number(times));
