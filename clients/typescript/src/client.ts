/** The client: makes a sealed report of a value, for an app that delivers reports itself. */

import { Budget } from "./budget/budget.js";
import type { Spent } from "./budget/spent.js";
import { CAMPAIGN_BYTES, NAME, openCampaign } from "./campaign/campaign.js";
import type { PendingDiscovery } from "./discovery/oblivious.js";
import { requireShort } from "./discovery/report.js";
import { UsageError } from "./errors.js";
import { parseJson } from "./json.js";
import { openMaker, type ReportMaker } from "./making.js";
import { requireGenerator } from "./maths/words.js";
import { own } from "./own.js";
import { MOST_SECONDS, requireIn } from "./sender/options.js";
import { Answers } from "./store/answers.js";
import { MemoryStore } from "./store/memory-store.js";
import type { Store } from "./store/store.js";
import type { Stream } from "./trust/asked.js";
import { LOG_BYTES, parseLog } from "./trust/campaign-log.js";
import { parseCampaignSignature } from "./trust/delegation.js";
import { Policy } from "./trust/policy.js";
import { requireAsked } from "./trust/sample.js";
import { coordinatesOf, textOfValue } from "./values/items.js";

const SIGNATURE_BYTES = 4096;
const DAY = 86_400;

/** The options of a client; files are passed as bytes. */
export interface ClientOptions {
  /** The campaign file (JSON). */
  readonly campaign: Uint8Array;
  /** The app's policy, which states its demands on the campaign. */
  readonly policy: Policy;
  /** The campaign's signature, `campaign.json.sig`. */
  readonly signature?: Uint8Array;
  /** The campaign's log; needed if the client missed an epoch. */
  readonly log?: Uint8Array;
  /** The bytes of the campaign's dictionary, unpacked, with one item a line. */
  readonly dictionary?: Uint8Array;
  /** The store for answers, budget and the installation's id; by default they are lost when the page closes. */
  readonly store?: Store;
  /** Limits the cost of all reports of this person; by default the cost is only counted, in the store. */
  readonly budget?: Budget;
  /** Parsed files of designs: a campaign with mechanism `wss` needs the file with its design. */
  readonly designs?: readonly unknown[];
  /** Length of the operator's windows, or of the shortest that a campaign may list; by default a day. */
  readonly windowSeconds?: number;
}

/**
 * Privatises and seals values of one client for one campaign. An app that wants its reports to be delivered uses a
 * `Sender` instead.
 *
 * Privacy: a frequency report is epsilon-locally private, replace-one; with noise of the mixes it is sealed, not
 * randomised, and hides its value as long as shuffler or auxiliary server keeps to its role. A discovery report hides its value, within the
 * (epsilon, delta) of the keep rule, as long as the auxiliary server and the analyzer do not collude. Reports are
 * charged before they are drawn. Whether a report may tell anything about its value does not depend on the value.
 */
export class Client {
  readonly #maker: ReportMaker;
  readonly #answers: Answers;
  readonly #budget: Budget;
  readonly #window: number;
  readonly #store: Store;

  private constructor(maker: ReportMaker, answers: Answers, budget: Budget, window: number, store: Store) {
    this.#maker = maker;
    this.#answers = answers;
    this.#budget = budget;
    this.#window = window;
    this.#store = store;
  }

  /**
   * Check a campaign and return its client.
   *
   * @throws Untrusted the policy refuses the campaign. FormatError: a file is invalid, or does not belong to the
   * campaign. HushcountError: the page has no true random generator.
   */
  static async open(given: ClientOptions): Promise<Client> {
    requireGenerator();
    const options = own(given);
    const { policy, store = new MemoryStore(), windowSeconds = DAY } = options;
    requireIn("windowSeconds", windowSeconds, 1, MOST_SECONDS);
    if (!(policy instanceof Policy)) throw new UsageError("policy must be a Policy: give Policy.parse(...)");
    const campaign = await openCampaign(parseJson(options.campaign, CAMPAIGN_BYTES, NAME), 1000 * windowSeconds, options.designs);
    if (campaign.memory && options.store === undefined) {
      throw new UsageError(`clients of campaign ${campaign.id} remember their answers: give a store`);
    }
    const answers = new Answers(store);
    const read = <Result>(bytes: Uint8Array | undefined, most: number, name: string, parse: Parse<Result>) =>
      bytes === undefined ? undefined : parse(parseJson(bytes, most, name), name);
    const maker = await openMaker({
      campaign,
      policy,
      signature: read(options.signature, SIGNATURE_BYTES, "the campaign's signature", parseCampaignSignature),
      log: read(options.log, LOG_BYTES, "the log", parseLog),
      dictionary: options.dictionary,
      answers,
    });
    return new Client(maker, answers, options.budget ?? new Budget(store), 1000 * windowSeconds, store);
  }

  /** The length of every sealed report of a stream. */
  sealedBytes(stream: Stream): number {
    return this.#maker.campaign.sealedBytes(stream);
  }

  /** The fingerprint of the campaign file; a post to the collector must contain it. */
  get fingerprint(): string {
    return this.#maker.campaign.fingerprint;
  }

  /**
   * Return one sealed frequency report; the report is of "other" if the value is outside the dictionary, or cannot be
   * an item.
   *
   * @param by the client's coordinate on each axis of the campaign; a missing or unlisted one is "other".
   * @param due when the app will send the report, in milliseconds since 1970; by default at once. If the campaign has
   * noise, a report names and counts in the window of this moment, and counts nowhere if it arrives in another window.
   * @throws NotAsked, OverCap, BudgetSpent, OptedOut no report may be made. StoreError: the store failed, so no report was made.
   */
  async report(value: string | number, by?: Readonly<Record<string, string | number>>, due: number = Date.now()): Promise<Uint8Array> {
    const text = textOfValue(value);
    const coordinates = coordinatesOf(by);
    const tells = await this.#charged("reports", await this.#maker.repeats(), this.#maker.campaign.noise && due);
    return this.#maker.report(tells ? text : null, coordinates, due);
  }

  /**
   * Return one sealed discovery report. For undefined and for a value in the dictionary, the report has nothing to
   * discover.
   *
   * @throws UsageError the value is longer than the campaign allows. If the app then sends no report, the missing
   * report reveals that the value is longer.
   */
  async discoveryReport(value: string | number | undefined): Promise<Uint8Array> {
    const text = await this.#short(value);
    this.#requireAsks(false);
    return this.#maker.discoveryReport(await this.#told(text));
  }

  /**
   * Return a discovery report of an oblivious campaign, which needs an evaluation that the app requests later.
   *
   * Send the evaluation once, at a random time that does not depend on the value, and then the report that `finish` makes
   * from the answer. If no usable answer comes, send `blank`. So one evaluation and one report are sent for every
   * value.
   *
   * @throws UsageError as `discoveryReport`; or the campaign has no evaluator.
   */
  async pendingDiscovery(value: string | number | undefined): Promise<PendingDiscovery> {
    const text = await this.#short(value);
    this.#requireAsks(true);
    return this.#maker.pendingDiscovery(await this.#told(text));
  }

  /** Return the cost of all reports under this client's budget, for the app to show. */
  spent(): Promise<Spent> {
    return this.#budget.spent();
  }

  /** Opt out for good: from now on no report can be made, and the memory's answers are deleted. */
  async forget(): Promise<void> {
    await this.#budget.optOut();
    await this.#answers.clear();
  }

  /** Return a value as text. Throws UsageError if it could be discovered, but is longer than the campaign allows. */
  async #short(value: string | number | undefined): Promise<string | undefined> {
    const format = this.#maker.requireDiscovery();
    const text = value === undefined ? undefined : textOfValue(value);
    requireShort(text === undefined ? undefined : await this.#maker.newOf(text), format);
    return text;
  }

  #requireAsks(wanted: boolean): void {
    const { id, discoveryTerms: terms } = this.#maker.campaign;
    if (terms?.isOblivious === wanted) return;
    const [has, use] = wanted ? ["no", "discoveryReport"] : ["an", "pendingDiscovery"];
    throw new UsageError(`campaign ${id} has ${has} evaluator: use ${use}`);
  }

  async #told(value: string | undefined): Promise<string | null> {
    return (await this.#charged("discovery", false)) ? (value ?? null) : null;
  }

  /**
   * Count and charge a report for good, before the report is drawn; return whether the report may depend on its value.
   */
  async #charged(stream: Stream, repeats: boolean, due?: number): Promise<boolean> {
    const { campaign } = this.#maker;
    await requireAsked(this.#store, campaign, Date.now());
    this.#maker.requireValid(Date.now(), [stream]);
    const [telling = 0] = await this.#budget.charge([{ campaign, stream, repeats, number: 1, due }], this.#window);
    return telling > 0;
  }
}

type Parse<Result> = (data: unknown, name: string) => Result;
