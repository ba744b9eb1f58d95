/**
 * Notes of the reports that left with a page, in `localStorage`. A closing page's write to `localStorage` is surely
 * kept, but a write to IndexedDB may be lost.
 *
 * Each report has its own item, so that tabs that close at the same moment do not overwrite each other's notes: the
 * report's key in the queue, which reveals no value, with the time. A tab that reads the queue finds the note with the
 * report. A tab that claims the report stores the time with the report, and deletes the note. A page that gets the
 * answer deletes the note too.
 *
 * No note is written in a worker, which has no `localStorage`, or if the person forbids `localStorage`, or if
 * `localStorage` is full.
 */

const PREFIX = "hushcount/left/";
/**
 * The largest number of notes. Older notes are deleted: their reports were claimed by another tab as they left, or were
 * in a store that ended with its page.
 */
const MOST_NOTES = 2000;

/** Note that reports leave at a time, under the token of a window; both are in milliseconds since 1970. */
export function noteLeft(keys: readonly string[], at: number, window: number): void {
  withStorage((storage) => {
    const old = namesIn(storage, "").sort((one, other) => momentIn(storage, one) - momentIn(storage, other));
    for (const name of old.slice(0, Math.max(0, old.length + keys.length - MOST_NOTES))) storage.removeItem(name);
    for (const key of keys) storage.setItem(PREFIX + key, `${String(at)} ${String(window)}`);
  });
}

/** A note: the time when a report left, and when the window of its token began. */
interface Note {
  readonly at: number;
  readonly window: number;
}

/** Return the note of the report of a key; undefined without a note. */
export function leftAt(key: string): Note | undefined {
  return withStorage((storage) => noteIn(storage, PREFIX + key));
}

/** Delete the notes of some reports. */
export function forgetLeft(keys: Iterable<string>): void {
  withStorage((storage) => {
    for (const key of keys) storage.removeItem(PREFIX + key);
  });
}

/** Delete the notes of all reports with this prefix of keys, even if the reports are gone. */
export function forgetAllLeft(prefix: string): void {
  withStorage((storage) => {
    for (const name of namesIn(storage, prefix)) storage.removeItem(name);
  });
}

function withStorage<Result>(work: (storage: Storage) => Result): Result | undefined {
  try {
    const storage = globalThis.localStorage as Storage | undefined;
    return storage === undefined ? undefined : work(storage);
  } catch {
    return undefined;
  }
}

function namesIn(storage: Storage, prefix: string): string[] {
  const names = Array.from({ length: storage.length }, (_, place) => storage.key(place) ?? "");
  return names.filter((name) => name.startsWith(PREFIX + prefix));
}

function momentIn(storage: Storage, name: string): number {
  return noteIn(storage, name)?.at ?? -1;
}

/** Return the note in an item; undefined if the item holds no note. */
function noteIn(storage: Storage, name: string): Note | undefined {
  const [, at, window] = /^(\d{1,14}) (-?\d{1,14})$/.exec(storage.getItem(name) ?? "") ?? [];
  return at === undefined ? undefined : { at: Number(at), window: Number(window) };
}
