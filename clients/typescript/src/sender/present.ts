/**
 * Provides the present maker of reports, from the kept documents, or from the collector's newest documents if the
 * policy accepts these.
 *
 * If a client requested the campaign file when a value is used, the request would reveal the time that the random delay
 * of reports hides. So once a file is kept, making a report causes no request. Rounds of delivery request the file
 * again, at a random time that is drawn when the file comes, and is kept with the file. If this time has passed, a
 * round waits for another random time, as a report does, because the page may just have been opened, or the device may
 * have slept. A page that closes before the end of this wait requests the file when it sends reports, because the
 * collector sees the arrival of these reports in any case.
 */

import { DeliveryError, HushcountError } from "../errors.js";
import { own } from "../own.js";
import type { Store } from "../store/store.js";
import { isSame, keepDocuments, keepUnchanged, keptDocuments, LEAST_AGE, type Documents } from "./documents.js";
import type { EventLog } from "./events.js";
import type { Fetch } from "./http.js";
import type { Maker } from "./making.js";
import { fetchDocuments, readPublication, type Publication, type Rules } from "./publication.js";
import { isAhead, LONGEST_WAIT, randomTime } from "./timing.js";

const WITHOUT_FILE = 60_000;
/** Longer pauses mean that the page slept: twice the time between two rounds, in milliseconds. */
const SLEPT = 120_000;
const LONGEST = 1.5 * LONGEST_WAIT;

/** How a sender checks and opens campaign files. */
export interface Reading extends Rules {
  /**
   * Return the maker of a publication's reports. Throws HushcountError if the policy refuses the publication, or if the
   * publication is damaged.
   */
  open(publication: Publication): Promise<Maker>;
}

/** The places from which a sender gets campaign files, and where it keeps them. */
export interface Source {
  readonly fetcher: Fetch;
  /** The address of the campaign at its collector. */
  readonly base: string;
  readonly campaign: string;
  readonly store: Store;
  /** The longest random time for which an overdue request waits, in milliseconds. */
  readonly delay: number;
  /** Keep the time at which the collector served a campaign file. */
  heard(at: number): Promise<void>;
}

/** The maker of the newest accepted campaign file. A file that cannot be fetched, or is refused, changes nothing. */
export class Present {
  readonly #source: Source;
  readonly #reading: Reading;
  readonly #log: EventLog;
  #kept: Promise<void> | undefined;
  #asking: Promise<void> | undefined;
  #documents: Documents = own({});
  #maker: Maker | undefined;
  #isKept = false;
  #due = 0;
  #drawn: number | undefined;
  /** Why there is no maker, or why the last attempt failed; undefined if the last attempt succeeded. */
  failure: HushcountError | undefined;

  constructor(source: Source, reading: Reading, log: EventLog) {
    this.#source = source;
    this.#reading = reading;
    this.#log = log;
  }

  /** The maker, if it was read or fetched already. */
  get known(): Maker | undefined {
    return this.#maker;
  }

  /** Return the maker at once, without asking the collector; undefined if there is none yet. */
  async maker(): Promise<Maker | undefined> {
    this.#kept ??= this.#readKept();
    await this.#kept.catch((error: unknown) => {
      // If the store could not be read now, the next call tries again.
      this.#kept = undefined;
      throw error;
    });
    return this.#maker;
  }

  /** Return the maker; if no file was ever kept, ask the collector, at most once a minute, or only `once`. */
  async first(once: boolean): Promise<Maker | undefined> {
    const never = (await this.maker()) === undefined && !this.#isKept;
    if (never && !(once && this.failure !== undefined) && this.#isTime(false)) await this.#askOnce();
    return this.#maker;
  }

  /**
   * Request the campaign file from the collector if it is time, or `anyway`; return the maker. Only rounds of delivery
   * call this method.
   *
   * `sends`: this round sends reports, so a due request need not wait.
   */
  async refreshed(when: "due" | "sends" | "anyway" = "due"): Promise<Maker | undefined> {
    await this.maker();
    if (when === "anyway" || this.#isTime(when === "sends")) await this.#askOnce();
    return this.#maker;
  }

  /** Return the time from which a round may ask, in milliseconds since 1970. */
  async nextDue(): Promise<number> {
    await this.maker();
    return this.#drawn ?? this.#due;
  }

  #isTime(sends: boolean): boolean {
    const now = Date.now();
    if (isAhead(this.#due, now, LONGEST)) return false;
    if (this.#maker === undefined || sends) return true;
    // The time is drawn again after a sleep, because the page would otherwise request the file at the moment when it
    // wakes.
    if (this.#drawn === undefined || now - this.#drawn > SLEPT) this.#drawn = now + randomTime(this.#source.delay);
    return !isAhead(this.#drawn, now, LONGEST);
  }

  #askOnce(): Promise<void> {
    return (this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    }));
  }

  async #readKept(): Promise<void> {
    const documents = await keptDocuments(this.#source.store, this.#source.campaign);
    if (documents.campaign === undefined) return;
    this.#isKept = true;
    try {
      this.#maker = await this.#opened(documents);
      this.#documents = documents;
      this.#due = documents.campaign.refreshAt;
    } catch (error) {
      // The file was kept by another version, has expired, or is older than the accepted epoch.
      this.failure = failureOf(error);
      this.#log.add("refused", 0, this.failure.message);
    }
  }

  async #opened(documents: Documents): Promise<Maker> {
    return this.#reading.open(await readPublication(documents, this.#reading.mostBytes));
  }

  async #ask(): Promise<void> {
    const { fetcher, base, store, campaign } = this.#source;
    try {
      const documents = await fetchDocuments(fetcher, base, this.#documents, this.#reading, Date.now());
      // Only now is it known that no page of another network came in the collector's place.
      if (documents.campaign.at !== undefined) await this.#source.heard(documents.campaign.at);
      const { campaign: before } = this.#documents;
      const unchanged = this.#maker !== undefined && before !== undefined && isSame(documents.campaign, before);
      if (!unchanged) this.#maker = await this.#opened(documents);
      this.#documents = documents;
      this.#due = documents.campaign.refreshAt;
      this.#isKept = true;
      await (unchanged ? keepUnchanged(store, campaign, documents.campaign) : keepDocuments(store, campaign, documents));
      this.#log.add(unchanged ? "unchanged" : "fetched");
      this.failure = undefined;
    } catch (error) {
      this.failure = failureOf(error);
      this.#due = Date.now() + (this.#maker === undefined ? WITHOUT_FILE : LEAST_AGE + randomTime(LEAST_AGE / 2));
      this.#log.add(error instanceof DeliveryError ? "not_fetched" : "refused", 0, this.failure.message);
    }
    this.#drawn = undefined;
  }
}

/** Return a HushcountError unchanged, and replace other errors, because their messages may repeat private data. */
function failureOf(error: unknown): HushcountError {
  return error instanceof HushcountError ? error : new HushcountError("the campaign file cannot be used");
}
