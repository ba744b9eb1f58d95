/**
 * What makes reports now: from the kept documents, or from the collector's newest if the policy accepts it.
 *
 * A request for the campaign file at the moment of use would tell what the random delay of reports hides. So a report
 * causes none once a file is kept. Rounds of delivery ask for it again, at a time that is drawn when the file comes and is
 * kept with it. A round that finds this time passed waits a random time from then on, as a report does: the page may just
 * have been opened, or the device have slept. A page that does not live so long asks when it sends reports: their arrival
 * is seen in any case.
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
/** Twice as long as between two rounds. */
const SLEPT = 120_000;
const LONGEST = 1.5 * LONGEST_WAIT;

/** What a sender needs to know of campaign files. */
export interface Reading extends Rules {
  /** Return what makes reports of a publication. Throws HushcountError if the policy refuses it, or it is damaged. */
  open(publication: Publication): Promise<Maker>;
}

/** Where a sender gets campaign files from, and where it keeps them. */
export interface Source {
  readonly fetcher: Fetch;
  /** The address of the campaign at its collector. */
  readonly base: string;
  readonly campaign: string;
  readonly store: Store;
  /** The longest random time that an overdue request waits, in milliseconds. */
  readonly delay: number;
}

/** The maker of the newest campaign file that was accepted. One that cannot be had, or is refused, changes nothing. */
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
  /** Why there is no maker, or the last attempt failed; undefined if it did not. */
  failure: HushcountError | undefined;

  constructor(source: Source, reading: Reading, log: EventLog) {
    this.#source = source;
    this.#reading = reading;
    this.#log = log;
  }

  /** Return the maker at once, without asking the collector; undefined while there is none yet. */
  async maker(): Promise<Maker | undefined> {
    this.#kept ??= this.#readKept();
    await this.#kept.catch((error: unknown) => {
      // A store that could not be read now may be read at the next call.
      this.#kept = undefined;
      throw error;
    });
    return this.#maker;
  }

  /** Return the maker; if no file was ever kept, ask for it, once a minute or `once` in all. */
  async first(once: boolean): Promise<Maker | undefined> {
    const never = (await this.maker()) === undefined && !this.#isKept;
    if (never && !(once && this.failure !== undefined) && this.#isTime(false)) await this.#askOnce();
    return this.#maker;
  }

  /**
   * Ask the collector if it is time, or `anyway`, in rounds of delivery alone; return the maker.
   *
   * `sends`: this round sends reports, and a request that is due need not wait.
   */
  async refreshed(when: "due" | "sends" | "anyway" = "due"): Promise<Maker | undefined> {
    await this.maker();
    if (when === "anyway" || this.#isTime(when === "sends")) await this.#askOnce();
    return this.#maker;
  }

  /** Return when a round may ask, in milliseconds since 1970. */
  async nextDue(): Promise<number> {
    await this.maker();
    return this.#drawn ?? this.#due;
  }

  #isTime(sends: boolean): boolean {
    const now = Date.now();
    if (isAhead(this.#due, now, LONGEST)) return false;
    if (this.#maker === undefined || sends) return true;
    // A page that slept past that moment would else ask as it wakes.
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
      // Kept by another version, expired, or older than what the policy accepted.
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

/** Return an error of ours, or one in its place: others may repeat what nobody should read. */
function failureOf(error: unknown): HushcountError {
  return error instanceof HushcountError ? error : new HushcountError("the campaign file cannot be used");
}
