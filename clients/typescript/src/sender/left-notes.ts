/**
 * Notes of the reports that left with a page, in `localStorage`: what a page writes there as it goes outlives it for sure,
 * and what it asks of IndexedDB does not.
 *
 * Each report has an item of its own, so that tabs which go at the same moment do not overwrite each other's: its key in
 * the queue, which names no value, with the moment. Whoever reads the queue finds the note with the report. Whoever claims
 * the report keeps the moment with it and deletes the note; a page that hears the answer deletes it too.
 *
 * A worker has no `localStorage`, and a person may forbid it or it may be full: then nothing is noted.
 */

const PREFIX = "hushcount/left/";
/** The oldest go, of reports that another tab claimed as they left, or whose store ended with the page. */
const MOST_NOTES = 2000;

/** Note that reports leave at a moment, in milliseconds since 1970. */
export function noteLeft(keys: readonly string[], at: number): void {
  withStorage((storage) => {
    const old = namesIn(storage, "").sort((one, other) => momentIn(storage, one) - momentIn(storage, other));
    for (const name of old.slice(0, Math.max(0, old.length + keys.length - MOST_NOTES))) storage.removeItem(name);
    for (const key of keys) storage.setItem(PREFIX + key, String(at));
  });
}

/** Return when the report of a key left; undefined without a note. */
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

/** Delete the notes of all reports whose keys begin so, also if the reports are gone. */
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

/** Return what an item says; -1 if it says no moment. */
function momentIn(storage: Storage, name: string): number {
  const text = storage.getItem(name) ?? "";
  return /^\d{1,14}$/.test(text) ? Number(text) : -1;
}
