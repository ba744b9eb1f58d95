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

/** Note that reports leave at a time, in milliseconds since 1970. */
export function noteLeft(keys: readonly string[], at: number): void {
  withStorage((storage) => {
    const old = namesIn(storage, "").sort((one, other) => momentIn(storage, one) - momentIn(storage, other));
    for (const name of old.slice(0, Math.max(0, old.length + keys.length - MOST_NOTES))) storage.removeItem(name);
    for (const key of keys) storage.setItem(PREFIX + key, String(at));
  });
}

/** Return the time when the report of a key left; undefined without a note. */
export function leftAt(key: string): number | undefined {
  const moment = withStorage((storage) => momentIn(storage, PREFIX + key));
  return moment === undefined || moment < 0 ? undefined : moment;
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

/** Return the time in an item; -1 if the item holds no time. */
function momentIn(storage: Storage, name: string): number {
  const text = storage.getItem(name) ?? "";
  return /^\d{1,14}$/.test(text) ? Number(text) : -1;
}
