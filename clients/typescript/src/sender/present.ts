/** What makes reports now: from the kept documents, or from the collector's newest if the policy accepts it. */

import { DeliveryError, HushcountError } from "../errors.js";
import type { Store } from "../store/store.js";
import type { CampaignSignature } from "../trust/delegation.js";
import { isFresh, isSame, keepDocuments, keptDocuments, type Documents } from "./documents.js";
import type { EventLog } from "./events.js";
import type { Fetch } from "./http.js";
import type { Maker } from "./making.js";
import { fetchDocuments, readPublication, type Named, type Publication } from "./publication.js";

const AFTER_FAILURE = 60_000;

/** What a sender needs to know of campaign files. */
export interface Reading {
  /** Bounds a dictionary, packed and unpacked. */
  readonly mostBytes: number;
  /** Check the form of a campaign file. Throws FormatError. */
  named(file: unknown): Named;
  /** Check also what the policy demands, as far as it goes without what the file names. Throws Untrusted too. */
  check(file: unknown, signature: CampaignSignature | undefined): Promise<Named>;
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
}

/** The maker of the newest campaign file that was accepted. One that cannot be had, or is refused, changes nothing. */
export class Present {
  readonly #source: Source;
  readonly #reading: Reading;
  readonly #log: EventLog;
  #kept: Promise<void> | undefined;
  #asking: Promise<void> | undefined;
  #documents: Documents = {};
  #maker: Maker | undefined;
  #nextAttempt = 0;
  /** Why the last attempt failed; undefined if it did not. */
  failure: HushcountError | undefined;

  constructor(source: Source, reading: Reading, log: EventLog) {
    this.#source = source;
    this.#reading = reading;
    this.#log = log;
  }

  /** Return the maker; ask the collector first if it is time, or `anyway`. Undefined while there is none yet. */
  async refreshed(anyway = false): Promise<Maker | undefined> {
    this.#kept ??= this.#readKept();
    await this.#kept.catch((error: unknown) => {
      // A store that could not be read now may be read at the next call.
      this.#kept = undefined;
      throw error;
    });
    const now = Date.now();
    const campaign = this.#documents.campaign;
    const fresh = this.#maker !== undefined && campaign !== undefined && isFresh(campaign, now);
    // A clock that was set back leaves a moment that is too far ahead.
    const soon = now < this.#nextAttempt && this.#nextAttempt <= now + AFTER_FAILURE;
    if (anyway || !(fresh || soon)) {
      this.#asking ??= this.#ask().finally(() => {
        this.#asking = undefined;
      });
      await this.#asking;
    }
    return this.#maker;
  }

  async #readKept(): Promise<void> {
    const documents = await keptDocuments(this.#source.store, this.#source.campaign);
    if (documents.campaign === undefined) return;
    try {
      this.#maker = await this.#reading.open(await readPublication(documents, this.#reading.mostBytes));
      this.#documents = documents;
    } catch (error) {
      // Kept by another version, or older than what the policy accepted: fetched anew.
      this.#log.add("refused", 0, sentenceOf(error));
    }
  }

  async #ask(): Promise<void> {
    const { fetcher, base, store, campaign } = this.#source;
    const named = (file: unknown): Named => this.#reading.named(file);
    const check = (...given: Parameters<Reading["check"]>): Promise<Named> => this.#reading.check(...given);
    try {
      const { mostBytes } = this.#reading;
      const documents = await fetchDocuments(fetcher, base, this.#documents, named, check, mostBytes, Date.now());
      const { campaign: before } = this.#documents;
      const unchanged = this.#maker !== undefined && before !== undefined && isSame(documents.campaign, before);
      if (!unchanged) this.#maker = await this.#reading.open(await readPublication(documents, this.#reading.mostBytes));
      this.#documents = documents;
      await keepDocuments(store, campaign, documents);
      this.#log.add(unchanged ? "unchanged" : "fetched");
      this.failure = undefined;
    } catch (error) {
      this.failure = error instanceof HushcountError ? error : new HushcountError("the campaign file cannot be used");
      this.#nextAttempt = Date.now() + AFTER_FAILURE;
      this.#log.add(error instanceof DeliveryError ? "not_fetched" : "refused", 0, this.failure.message);
    }
  }
}

/** Return an error's sentence if it is one of ours: others may repeat what nobody should read. */
function sentenceOf(error: unknown): string {
  return error instanceof HushcountError ? error.message : "it cannot be used";
}
