/** Makes a report of an app's value and brings it to the collector's disk: make, queue, delay, batch, send, repeat. */

import { Budget } from "../budget/budget.js";
import { requireOptedIn } from "../budget/ledger.js";
import { hearOptOut } from "../budget/opt-out.js";
import { startsOf } from "../budget/starts.js";
import type { Spent } from "../budget/spent.js";
import { HushcountError, NotYet, Untrusted, UsageError, type Reported } from "../errors.js";
import { requireGenerator } from "../maths/words.js";
import { own } from "../own.js";
import { withPasses } from "../passes/load.js";
import { Answers } from "../store/answers.js";
import type { Store } from "../store/store.js";
import { Policy } from "../trust/policy.js";
import { coordinatesOf, textOfValue } from "../values/items.js";
import { Arrivals } from "./arrivals.js";
import type { Asking } from "./evaluations.js";
import { deliver, type Delivery } from "./deliverer.js";
import { EventLog, type Event } from "./events.js";
import { heldUntil, resume } from "./hold.js";
import { addressOf } from "./http.js";
import { inTurn } from "./in-turn.js";
import { Leaving } from "./leaving.js";
import { loadAsking } from "./load-evaluations.js";
import { make, type Maker, type Making, type Measurement } from "./making.js";
import { numbersOf, type SenderOptions } from "./options.js";
import { followPage } from "./page.js";
import { Present, type Reading } from "./present.js";
import type { Target } from "./posting.js";
import { Queue, type Queued, type Waiting } from "./queue.js";
import { reading } from "./reading.js";
import { Rounds } from "./rounds.js";
import { isAhead, LONGEST_WAIT } from "./timing.js";
import { clientTokens, forgetTokens, type Tokens } from "./token.js";

/** The largest number of values in one step of the store. */
const MOST_AT_ONCE = 100;

/**
 * Makes the reports of one client for one campaign, and delivers them to one collector. Tabs may share a store.
 *
 * Reports are in the store when `report` returns. So if a tab is killed, no report is lost, and the next page sends the
 * reports. No report is sent by two tabs at the same time.
 *
 * @example
 * const sender = new Sender({ site, policy, store: await IndexedDbStore.open() });
 * sender.start();
 * await sender.report("dark-mode");
 */
export class Sender {
  readonly #campaign: string;
  readonly #budget: Budget;
  readonly #store: Store;
  readonly #queue: Queue;
  readonly #present: Present;
  readonly #target: Omit<Target, keyof Tokens | "window" | "after">;
  readonly #making: Making;
  readonly #log = new EventLog();
  readonly #leaving = new Leaving();
  readonly #reportInTurn: (measurement: Measurement) => Promise<void>;
  readonly #strict: boolean | undefined;
  readonly #dropped: Partial<Record<Reported, number>> = own({});
  #asking: Asking | undefined;
  #tokens: Tokens | undefined;
  #heldUntil = 0;
  /** The last known state of the store, kept because a closing page has no time to read the store. */
  #optedOut = true;
  readonly #rounds = new Rounds(() => this.#timeToWait(), () => this.#deliverQuietly());
  #delivering: Promise<Delivery> | undefined;
  #running: AbortController | undefined;

  /** @throws UsageError an option is invalid. HushcountError: the page has no true random generator. */
  constructor(all: SenderOptions, open: (options: SenderOptions) => Reading = reading) {
    requireGenerator();
    const options = own(all);
    const { site, policy, store } = options;
    if (!(policy instanceof Policy)) throw new UsageError("policy must be a Policy: give Policy.parse(...)");
    const numbers = numbersOf(options);
    if (policy.campaignId === undefined) throw new UsageError("policy must be a Policy that names its campaign");
    const campaign = policy.campaignId;
    const baseOf = (...at: Parameters<typeof addressOf>): string => `${addressOf(...at)}/v1/campaigns/${campaign}`;
    const base = baseOf(site);
    const evaluator = baseOf(options.evaluator ?? site, "evaluator");
    if (options.issuer !== undefined) addressOf(options.issuer.address, "issuer");
    const fetcher = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
    this.#campaign = campaign;
    this.#store = store;
    this.#strict = options.strict;
    const budget = options.budget ?? new Budget(store);
    const queue = new Queue(store, campaign, numbers.mostQueued);
    this.#budget = budget;
    this.#queue = queue;
    this.#target = { fetcher, base };
    const arrivals = new Arrivals(store, campaign, () => startsOf(numbers.window, this.#present.known?.campaign));
    const heard = (at: number): Promise<void> => arrivals.heard(at);
    this.#present = new Present({ fetcher, base, campaign, store, delay: numbers.delay, heard }, open(options), this.#log);
    const given = { ...numbers, store, evaluator, budget, queue, leaving: this.#leaving, log: this.#log };
    const askingOf = async (): Promise<Asking> => {
      const loaded = await loadAsking(given);
      return (this.#asking ??= loaded);
    };
    const onQueued = (reports: readonly Queued[]): void => {
      if (this.#optedOut) return;
      this.#leaving.add(reports);
      this.#asking?.add(reports);
    };
    this.#making = { ...numbers, store, budget, arrivals, keepValues: options.keepValues ?? false, siteName: options.siteName, issuer: options.issuer, askingOf, onQueued };
    this.#reportInTurn = inTurn((values) => this.#reportAll(values), MOST_AT_ONCE);
  }

  /**
   * Make and queue the reports of one value: a frequency report, a discovery report, or both, as the campaign states.
   *
   * This method sends no request once a campaign file is kept. `start` fetches the first file. Without `start`, the
   * first report fetches the file, and the time of this request reveals the time of use.
   *
   * Calls that come close together share steps of the store, and the page can do other work between any two reports.
   *
   * @param by the client's coordinate on each axis of the campaign; a missing or unlisted one is "other".
   * @returns "queued": the reports, or with `keepValues` the value, wait on this device. Any other word: nothing was
   * queued; `dropped` counts the words, and `log` has a sentence.
   * @throws UsageError the value is neither a string nor a number. Only with `strict`: NotAsked, NotYet, Untrusted,
   * QueueFull, OverCap, BudgetSpent, OptedOut, StoreError in place of a word.
   */
  async report(value: string | number, by?: Readonly<Record<string, string | number>>): Promise<Reported> {
    const measurement = { value: textOfValue(value), by: coordinatesOf(by) };
    try {
      await this.#reportInTurn(measurement);
      return "queued";
    } catch (error) {
      if (this.#strict === true || !(error instanceof HushcountError)) throw error;
      const { word } = error;
      this.#dropped[word] = (this.#dropped[word] ?? 0) + 1;
      this.#log.add("not_queued", 0, error.message);
      return word;
    }
  }

  /** How many values this sender did not queue, by the word that `report` returned. */
  get dropped(): Readonly<Partial<Record<Reported, number>>> {
    return { ...this.#dropped };
  }

  /**
   * Send due reports, in batches, and return the outcome; any tab may call it.
   *
   * `deliver` never throws because of the collector or the network. After a failure reports wait, and they wait longer
   * after each further failure. Call it from a timer, not when a value is used: `deliver` also requests the campaign
   * file when this request is due.
   *
   * @param early send also reports that are not due yet. Their time of arrival then reveals the time of this call.
   * @throws HushcountError the store cannot be used.
   */
  async deliver(early = false): Promise<Delivery> {
    // Deliveries run one after the other; a call that asks for more than the running delivery starts another delivery
    // after it.
    if (early && this.#delivering !== undefined) await this.#delivering.catch(() => undefined);
    this.#delivering ??= this.#deliver(early).finally(() => {
      this.#delivering = undefined;
    });
    return this.#delivering;
  }

  /**
   * Deliver from now on, as long as the page lives. When the page is hidden or closes, this tab's queued reports are
   * sent too, even if they are not due, by requests that outlive the page. The time of arrival of these reports then
   * reveals when the person left.
   */
  start(): this {
    if (this.#running !== undefined) return this;
    const running = new AbortController();
    this.#running = running;
    const onLeave = (): void => void this.#leave();
    const onReturn = (): void => this.#rounds.wake();
    const onOptOut = (): void => {
      this.#optedOut = true;
      this.#readOptOut().then(onReturn, () => undefined);
    };
    const onOnline = (): void => {
      this.#asking?.resume();
      void resume(this.#store, this.#campaign).then(onReturn, onReturn);
    };
    followPage({ onLeave, onReturn, onOnline }, running.signal);
    running.signal.addEventListener("abort", onReturn);
    hearOptOut(onOptOut, running.signal);
    onOptOut();
    void this.#rounds.run(running.signal);
    return this;
  }

  /** Stop delivering; waiting reports are kept in the store. */
  close(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  /** Return the spent budget by campaign and stream, with sentences for the person. */
  spent(): Promise<Spent> {
    return this.#budget.spent();
  }

  /**
   * Opt out, durably: no tab makes or sends reports any more, and waiting reports, answers and the token are deleted.
   *
   * Data of other campaigns in the store is deleted too, because the store is one person's. The spent budget is still
   * counted. `Budget.optIn` of the same budget ends the opt-out.
   */
  async forget(): Promise<void> {
    this.#letGo();
    await this.#budget.optOut();
    await new Answers(this.#store).clear();
    this.#log.add("forgotten", await this.#queue.clearAll());
    await forgetTokens(this.#store);
    this.#tokens = undefined;
  }

  /** The newest steps of this sender, without any value. */
  get log(): readonly Event[] {
    return this.#log.events();
  }

  async #reportAll(values: readonly Measurement[]): Promise<void> {
    // The opt-out is checked first, because a request for the campaign file would tell the collector that a person who
    // opted out uses the app.
    requireOptedIn({ optedOut: await this.#readOptOut() });
    const maker = await this.#maker();
    // The tokens are read now, because a closing page has no time to read them.
    await this.#readTokens(maker);
    if (maker === undefined) {
      await this.#requireKeptValues();
      const body = new Uint8Array();
      await this.#queue.put(values.map((measurement) => own<Waiting>({ fingerprint: "", stream: "", body, ...measurement, due: Date.now() })));
      this.#log.add("waits", values.length);
      this.#rounds.wake();
      return;
    }
    const { streams } = maker.campaign;
    await this.#queue.requireRoom(values.length * streams.length);
    const wishes = values.flatMap((measurement) => streams.map((stream) => ({ stream, measurement })));
    const queued = await this.#queue.put(await make(maker, wishes, this.#making));
    this.#making.onQueued(queued);
    this.#log.add("queued", queued.length);
    this.#rounds.wake();
  }

  /** Return the maker. `start` fetches the first campaign file; only without `start`, a report fetches it. */
  #maker(): Promise<Maker | undefined> {
    const running = this.#running !== undefined;
    return running && this.#making.keepValues ? this.#present.maker() : this.#present.first(running);
  }

  /** Forget the requests and reports that would be sent when this tab closes, because the person opted out. */
  #letGo(): void {
    this.#optedOut = true;
    this.#leaving.clear();
    this.#asking = undefined;
  }

  async #readOptOut(): Promise<boolean> {
    const optedOut = await this.#budget.optedOut();
    if (optedOut) this.#letGo();
    this.#optedOut = optedOut;
    return optedOut;
  }

  async #requireKeptValues(): Promise<void> {
    const { failure } = this.#present;
    if (failure instanceof Untrusted) throw failure;
    if (this.#making.keepValues) return;
    throw new NotYet(
      `campaign ${this.#campaign} is not fetched yet (${failure?.message ?? "no attempt was made"}): report again later, ` +
        "or give keepValues: true to let values wait on this device",
    );
  }

  async #deliver(early: boolean): Promise<Delivery> {
    // After the opt-out no report is sent, and no token is made.
    const nobody = { secret: new Uint8Array(), shown: (): undefined => undefined, has: (): boolean => false };
    const tokens = (await this.#readOptOut()) ? nobody : await this.#readTokens(await this.#present.refreshed(), true);
    const target = this.#targetOf(tokens);
    const delivering = {
      store: this.#store,
      campaign: this.#campaign,
      queue: this.#queue,
      present: this.#present,
      making: this.#making,
      leaving: this.#leaving,
      log: this.#log,
      asked: Date.now(),
      target,
    };
    const blank = (await this.#asking?.ask(target, early, early)) ?? {};
    const delivery = { ...(await deliver(delivering, early)), blank };
    this.#heldUntil = delivery.heldUntil ?? 0;
    return delivery;
  }

  async #deliverQuietly(): Promise<void> {
    try {
      await this.deliver();
    } catch (error) {
      this.#log.add("again", 0, error instanceof HushcountError ? error.message : "it cannot deliver");
    }
  }

  async #leave(): Promise<void> {
    if (this.#tokens === undefined || this.#optedOut) return;
    const target = this.#targetOf(this.#tokens);
    // Evaluations end when the page closes. They are requested now, so that the answers come in time if the page is not
    // closed.
    this.#asking?.ask(target, true).catch(() => undefined);
    if (isAhead(this.#heldUntil, Date.now(), LONGEST_WAIT)) return;
    const sent = await this.#leaving.send(target, this.#making.arrivals);
    if (sent === 0) return;
    this.#log.add("sent", sent);
    // A page that is only hidden, and not closed, continues here.
    await this.#present.refreshed("sends");
  }

  #targetOf(tokens: Tokens): Target {
    const { arrivals } = this.#making;
    return { ...this.#target, ...tokens, window: arrivals.present(), after: (moment) => arrivals.after(moment) };
  }

  /** Return the milliseconds until there may be work for a delivery. */
  async #timeToWait(): Promise<number> {
    try {
      // The opt-out is read from the store, because a browser may lack messages between tabs.
      await this.#readOptOut();
      await this.#leaving.renew(this.#queue);
      const due = await this.#queue.nextDue(Date.now());
      const held = await heldUntil(this.#store, this.#campaign, Date.now());
      const asked = this.#asking?.next() ?? Infinity;
      const fetched = this.#optedOut ? Infinity : await this.#present.nextDue();
      // If the issuer were asked only with reports, it would see when values are used.
      const first = (await this.#present.maker())?.campaign.passes ? 0 : Infinity;
      const passes = this.#optedOut ? Infinity : (this.#tokens?.asks ?? first);
      return Math.min(asked, fetched, passes, due === undefined ? Infinity : Math.max(due, held ?? 0)) - Date.now();
    } catch {
      // If the store cannot be read, nothing else is needed, because the last known state expires after a short time.
      return Infinity;
    }
  }

  /** Read the tokens; `asks`: first ask the issuer, if the campaign asks for passes, and if that is due. */
  async #readTokens(maker: Maker | undefined, asks = false): Promise<Tokens> {
    // The tokens are read each time, because another tab may have deleted them at an opt-out.
    const [tokens] = await Promise.all([clientTokens(this.#store, this.#campaign), this.#making.arrivals.read()]);
    const given = { ...this.#making, ...this.#target, ...tokens, log: this.#log };
    return (this.#tokens = maker?.campaign.passes ? await withPasses(given, maker.campaign, asks) : tokens);
  }
}
