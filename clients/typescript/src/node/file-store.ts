/**
 * Records of one person in a folder, for Node.
 *
 * `records/` in the folder has two files. One has all records. The other is empty, and its name says which file that is:
 * `now-NUMBER-ID`. A step that writes first makes a complete file of the new records, `data-NUMBER-ID`, and then renames
 * the empty file. Only one process can rename it from its old name, and no name is used twice. So a process that read
 * older records cannot write, and repeats its step.
 *
 * There is no lock: Node cannot lock files, and a lock file would outlive a killed process. A database would be simpler,
 * but Node 20 has none.
 */

import { createHash, randomBytes } from "node:crypto";
import { constants, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { deserialize, serialize } from "node:v8";
import { StoreError } from "../errors.js";
import { own } from "../own.js";
import type { Entry, Outcome, Store, Value, Wanted } from "../store/store.js";

const MOST_BYTES = 1 << 26;
const FORMAT = Buffer.from("hushcount records 1\n");
const DIGEST_BYTES = 32;
const NAME = /^(now|data)-(\d{1,15})-([0-9a-f]{32})$/;
/** A listing of a folder may miss a file that is renamed meanwhile; the next listing has it. */
const LISTINGS = 100;

/** All records after a step, by key, each serialized; `name` is what the names of the two files end with. */
interface Records {
  readonly name: string;
  readonly number: number;
  readonly byKey: ReadonlyMap<string, Uint8Array>;
}

/**
 * A durable store in a folder. A step's result comes after its records are on the disk, so a power cut renews no
 * budget. The processes of one person may share a folder; the folder of another person must be another one. The file
 * system must be local, of Linux or macOS.
 *
 * A step that writes costs the time to write all records: a millisecond or two while few reports wait.
 *
 * Privacy: the folder is readable only by its user, and a restored older copy of it renews the budget.
 */
export class FileStore implements Store {
  readonly #folder: string;
  #records: Records | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Open a person's folder, or create it with mode 0700.
   *
   * @param folder the path; its `records/` belongs to this class.
   * @throws StoreError the folder cannot be read or written, other users can write to it or read `records/`, or the
   * records are damaged.
   */
  static async open(folder: string): Promise<FileStore> {
    const store = new FileStore(join(resolve(folder), "records"));
    await store.#guarded(async () => {
      await created(resolve(folder), store.#folder);
      await requireMode(resolve(folder), 0o022, "must not be writable by others");
      await requireMode(store.#folder, 0o077, "must be 0700");
      await store.#newest();
    });
    return store;
  }

  change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    const changed = this.#last.then(() => this.#change(wanted, step));
    this.#last = changed.catch(() => undefined);
    return changed;
  }

  close(): void {
    this.#closed = true;
    this.#records = undefined;
  }

  async #change<Result>(
    wanted: readonly Wanted[],
    step: (found: readonly (readonly Entry[])[]) => Outcome<Result>,
  ): Promise<Result> {
    for (;;) {
      if (this.#closed) throw new StoreError("the store was closed by the app: open it again");
      const before = await this.#guarded(() => this.#newest());
      const { put = [], remove = [], result } = own(step(wanted.map((one) => found(before.byKey, one))));
      if (put.length === 0 && remove.every((key) => !before.byKey.has(key))) return result;
      const after = new Map(before.byKey);
      for (const key of remove) after.delete(key);
      for (const [key, value] of put) after.set(key, serialize(value));
      if (await this.#guarded(() => this.#write(before, after))) return result;
    }
  }

  /** Return the newest records, after they are on the disk. */
  async #newest(): Promise<Records> {
    for (let left = LISTINGS; left > 0; left -= 1) {
      const name = newestOf(await readdir(this.#folder));
      if (name === undefined) continue;
      if (name === this.#records?.name) return this.#records;
      const content = await readWhole(join(this.#folder, `data-${name}`));
      // Another process has written since the listing, and removed this file.
      if (content === undefined) continue;
      const byKey = recordsOf(content, this.#folder);
      // The other process may be killed before it has synced the new name.
      await synced(this.#folder);
      await removeOlder(this.#folder, name);
      return (this.#records = { name, number: numberOf(name), byKey });
    }
    throw damaged(this.#folder, "a file is missing");
  }

  /** Write records unless another process has written since `before`; return whether they are on the disk. */
  async #write(before: Records, byKey: ReadonlyMap<string, Uint8Array>): Promise<boolean> {
    const number = before.number + 1;
    const name = `${String(number)}-${randomBytes(16).toString("hex")}`;
    const data = join(this.#folder, `data-${name}`);
    try {
      await writeWhole(data, contentOf(byKey, this.#folder));
      await rename(join(this.#folder, `now-${before.name}`), join(this.#folder, `now-${name}`));
    } catch (error) {
      await rm(data, { force: true });
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    }
    // If the sync fails, the records are read and synced again before the next step.
    this.#records = undefined;
    await synced(this.#folder);
    this.#records = { name, number, byKey };
    await removeOlder(this.#folder, name);
    return true;
  }

  /** Replace the errors of the file system by a StoreError, which names no record. */
  async #guarded<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof StoreError) throw error;
      const code = codeOf(error) ?? "no reason given";
      const isFull = code === "ENOSPC" || code === "EDQUOT";
      const cure = isFull ? "free space on this device" : "let this user, and no other, read and write the folder";
      throw new StoreError(`cannot use the folder ${this.#folder} (${code}): ${cure}`);
    }
  }
}

/** Create the folder of the records unless it exists; it appears complete, so no process begins it a second time. */
async function created(parent: string, folder: string): Promise<void> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  if (await exists(folder)) return;
  const fresh = `${folder}-${randomBytes(16).toString("hex")}`;
  await mkdir(fresh, { mode: 0o700 });
  try {
    const name = `0-${randomBytes(16).toString("hex")}`;
    await writeWhole(join(fresh, `data-${name}`), contentOf(new Map(), folder));
    await writeWhole(join(fresh, `now-${name}`), Buffer.alloc(0));
    await synced(fresh);
    await rename(fresh, folder);
    await synced(parent);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    // Another process has created it meanwhile.
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    },
  );
}

/** Throw StoreError if a folder has a bit of a mode: who can rename its files can renew the budget. */
async function requireMode(folder: string, forbidden: number, wanted: string): Promise<void> {
  const mode = (await stat(folder)).mode & 0o777;
  if ((mode & forbidden) === 0) return;
  throw new StoreError(`the folder ${folder} has mode 0${mode.toString(8)}, ${wanted}: chmod 700 ${folder}`);
}

/** Return the name of the newest records in a listing, or undefined. */
function newestOf(listing: readonly string[]): string | undefined {
  const names = listing.filter((file) => NAME.exec(file)?.[1] === "now").map((file) => file.slice("now-".length));
  return names.sort((one, other) => numberOf(other) - numberOf(one))[0];
}

function numberOf(name: string): number {
  return Number(name.split("-")[0]);
}

/**
 * Remove all other files of the newest number and of lower ones, because nobody can put them into force any more. A file
 * that cannot be removed does no harm, and the next step tries again.
 */
async function removeOlder(folder: string, newest: string): Promise<void> {
  const files = await readdir(folder).catch(() => []);
  const data = files.filter((file) => NAME.exec(file)?.[1] === "data").map((file) => file.slice("data-".length));
  const older = data.filter((name) => name !== newest && numberOf(name) <= numberOf(newest));
  await Promise.allSettled(older.map((name) => rm(join(folder, `data-${name}`))));
}

/** Return the bytes of a file, or undefined if it does not exist; no bytes for a pipe, and for more than `MOST_BYTES`. */
async function readWhole(path: string): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const content = Buffer.alloc(size > MOST_BYTES ? 0 : size);
    const { bytesRead } = await file.read(content, 0, content.length, 0);
    return content.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function writeWhole(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Wait until the names in a folder are on the disk. */
async function synced(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function contentOf(byKey: ReadonlyMap<string, Uint8Array>, folder: string): Uint8Array {
  const body = serialize(byKey);
  const content = Buffer.concat([FORMAT, createHash("sha256").update(body).digest(), body]);
  if (content.length <= MOST_BYTES) return content;
  throw new StoreError(
    `the records in ${folder} would have ${String(content.length)} bytes, must have at most ${String(MOST_BYTES)}: ` +
      "deliver what waits, or give the sender a smaller mostQueued",
  );
}

/** Read a file of records. Throws StoreError if it is damaged; such a file is never replaced by an empty one. */
function recordsOf(content: Buffer, folder: string): ReadonlyMap<string, Uint8Array> {
  const body = content.subarray(FORMAT.length + DIGEST_BYTES);
  const digest = content.subarray(FORMAT.length, FORMAT.length + DIGEST_BYTES);
  const isWhole = content.subarray(0, FORMAT.length).equals(FORMAT) && createHash("sha256").update(body).digest().equals(digest);
  try {
    if (isWhole) return deserialize(body) as ReadonlyMap<string, Uint8Array>;
  } catch {
    // A newer Node has written the file.
  }
  throw damaged(folder, "a file is damaged or of another version");
}

function damaged(folder: string, how: string): StoreError {
  return new StoreError(
    `the records in ${folder} cannot be read, ${how}: restore the newest copy; removing the folder would renew the ` +
      "budget, although sent reports cannot be taken back",
  );
}

function found(byKey: ReadonlyMap<string, Uint8Array>, wanted: Wanted): Entry[] {
  const valueOf = (key: string): Value => deserialize(new Uint8Array(byKey.get(key) ?? [])) as Value;
  if (typeof wanted === "string") return byKey.has(wanted) ? [[wanted, valueOf(wanted)]] : [];
  const { prefix, most, values, count } = own(wanted);
  const keys = [...byKey.keys()].filter((key) => key.startsWith(prefix));
  if (count === true) return [[prefix, keys.length]];
  return keys.sort().slice(0, most).map((key) => [key, values === false ? null : valueOf(key)]);
}

function codeOf(error: unknown): string | undefined {
  return own(error as { readonly code?: string }).code;
}
