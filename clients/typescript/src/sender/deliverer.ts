/** Takes due reports from the queue, sends them in batches, and settles each batch by the answer. */

import { BudgetSpent, NotAsked, OverCap, Untrusted, UsageError } from "../errors.js";
import { own } from "../own.js";
import type { Store } from "../store/store.js";
import type { Stream } from "../trust/asked.js";
import type { EventLog } from "./events.js";
import { heldUntil, hold, release } from "./hold.js";
import type { Leaving } from "./leaving.js";
import { make, nextTask, type Maker, type Making, type Measurement } from "./making.js";
import { post, type Target } from "./posting.js";
import type { Present } from "./present.js";
import { isPast, isRecent, type Claimed, type Queue, type Queued, type Turn, type Waiting } from "./queue.js";
import { pause } from "./timing.js";
import type { Verdict } from "./verdict.js";

/**
 * The largest number of reports and of bytes in one request; after the refusal "smaller" the number of reports is
 * halved.
 */
const MOST_REPORTS = 128;
const MOST_BYTES = 1 << 16;
const UNTIL_MADE = 3_600_000;
/**
 * The largest number of refusals of one report by anyone else than the collector. With the pauses between tries, this
 * number is reached after about six days.
 */
const MOST_REFUSALS = 200;

/**
 * The result of one call of `deliver`. Reports that waited before the call, or were made during the call, are now sent,
 * dropped or waiting: `before + reported + added = sent + dropped + waiting`, if one tab delivers.
 */
export interface Delivery {
  /** Reports that the collector has on its disk. */
  readonly sent: number;
  /** Reports that were made from waiting plain values. */
  readonly remade: number;
  /**
   * By how many the reports that were made exceed their plain values, because one value may become a report of each
   * stream.
   */
  readonly added: number;
  /**
   * Reports that were given up, by reason. Reports that were given up for the reason `left_with_page` have most
   * probably arrived.
   */
  readonly dropped: Readonly<Record<string, number>>;
  /** The number of reports and plain values that wait now. */
  readonly waiting: number;
  /** After failures, no report is sent before this time, in milliseconds since 1970; undefined: no failure. */
  readonly heldUntil: number | undefined;
  /**
   * By reason, the number of discovery reports that became blanks, because their evaluations did not come. Blanks are
   * sent, or wait, like all other reports.
   */
  readonly blank: Readonly<Record<string, number>>;
  /** Whether reports wait because the client has no pass for the present window; the sender's `log` says why. */
  readonly noPass: boolean;
}

/** The inputs of a delivery. */
export interface Delivering {
  readonly store: Store;
  readonly campaign: string;
  readonly queue: Queue;
  readonly present: Present;
  readonly target: Target;
  readonly making: Making;
  readonly leaving: Leaving;
  readonly log: EventLog;
  /** Time when the delivery began to ask for evaluations, in milliseconds since 1970. */
  readonly asked: number;
}

/** The progress of one delivery. */
interface Done {
  sent: number;
  remade: number;
  added: number;
  dropped: Record<string, number>;
  /** Whether the campaign file was fetched because an epoch was closed. */
  asked: boolean;
  /** Whether reports can be made from plain values, as far as is known. */
  makes: boolean;
  most: number;
  maker: Maker | undefined;
}

/** Send due reports, or all waiting reports if `early`. Throws HushcountError only if the store cannot be used. */
export async function deliver(to: Delivering, early: boolean): Promise<Omit<Delivery, "blank">> {
  const { store, campaign, queue, making } = to;
  await to.leaving.settled();
  const optedOut = await making.budget.optedOut();
  const done: Done = {
    sent: 0,
    remade: 0,
    added: 0,
    // The counts inherit nothing, because a reason may be any word, such as the name of a property that all objects
    // inherit.
    dropped: Object.create(null) as Record<string, number>,
    asked: false,
    makes: true,
    most: MOST_REPORTS,
    maker: optedOut ? undefined : await to.present.refreshed(),
  };
  let turnNow = making.arrivals.turns();
  while ((await heldUntil(store, campaign, Date.now())) === undefined) {
    if (await making.budget.optedOut()) {
      drop(to, done, "opted_out", await queue.clear());
      break;
    }
    const plain = done.maker !== undefined && done.makes;
    const most = { reports: done.most, bytes: MOST_BYTES };
    const turn = turnNow();
    const claimed = await queue.claim(Date.now(), most, plain, early, turn, to.asked, to.target.has(turn.window));
    if (claimed === undefined) break;
    to.leaving.remove(claimed.from);
    drop(to, done, "over_cap", claimed.over, streamOf(claimed));
    if (claimed.reports.length === 0) continue;
    if (await arrivedBefore(to, claimed, turn, done)) continue;
    // The page slept since the claim, so another tab may have claimed the reports meanwhile.
    if (!isRecent(claimed.at, Date.now())) continue;
    if (isPlain(claimed)) await makeAnew(to, claimed, done);
    else {
      const said = await post(to.target, claimed.reports, false);
      await settle(to, claimed, said, done);
      if (said.fate === "early") turnNow = making.arrivals.turns();
    }
    await nextTask();
  }
  const { sent, remade, added, dropped } = done;
  if (sent > 0) await to.present.refreshed("sends");
  const held = await heldUntil(store, campaign, Date.now());
  const waiting = await queue.waiting();
  const noPass = waiting > 0 && done.maker !== undefined && to.target.has(to.target.window) === false;
  return { sent, remade, added, dropped, waiting, heldUntil: held, noPass };
}

/**
 * Give up reports that left with a page in another window, because they might count twice if they were sent again, and
 * reports that name a window that is over, because they would count in no other one.
 */
async function arrivedBefore(to: Delivering, claimed: Claimed, turn: Turn, done: Done): Promise<boolean> {
  if (!isPast(claimed.of, turn.window)) return false;
  const { left, window = 0 } = claimed.of;
  const number = await to.making.arrivals.left(claimed.reports.map(({ key }) => key), window);
  drop(to, done, left === undefined ? "other_window" : "left_with_page", number, streamOf(claimed));
  return true;
}

/** Remove, keep or replace the reports of a batch, as the answer requires. */
async function settle(to: Delivering, claimed: Claimed, said: Verdict, done: Done): Promise<void> {
  const { store, campaign, queue, making, log } = to;
  const keys = claimed.reports.map(({ key }) => key);
  const stream = streamOf(claimed);
  if (said.at !== undefined && said.fate !== "sent") await making.arrivals.heard(said.at);
  switch (said.fate) {
    case "sent": {
      await release(store, campaign);
      const number = await making.arrivals.settled(keys, said.at, true);
      done.sent += number;
      log.add("sent", number, "", stream);
      break;
    }
    case "dropped":
      await release(store, campaign);
      drop(to, done, said.reason, await making.arrivals.settled(keys, said.at), stream);
      break;
    case "early":
      await tooEarly(to, claimed, said, done);
      break;
    case "smaller":
      done.most = Math.max(1, Math.floor(keys.length / 2));
      to.leaving.add(await queue.giveBack(claimed.reports));
      break;
    case "closed":
      await closed(to, claimed, said, done);
      break;
    case "refused": {
      const until = await hold(store, campaign, Date.now(), said);
      const back = await queue.giveBackRefused(claimed.reports, until);
      const gone = back.filter(({ waiting }) => (waiting.refusals ?? 0) >= MOST_REFUSALS).map(({ key }) => key);
      if (gone.length < back.length) log.add("again", back.length - gone.length, said.reason, stream);
      drop(to, done, said.reason, await making.arrivals.settled(gone, undefined), stream);
      break;
    }
    case "again":
      await again(to, claimed, said);
  }
}

async function again(to: Delivering, claimed: Claimed, said: Verdict): Promise<void> {
  const { store, campaign, queue, log } = to;
  await queue.giveBack(claimed.reports, await hold(store, campaign, Date.now(), said));
  log.add("again", claimed.reports.length, said.reason, streamOf(claimed));
}

/**
 * Let reports wait for their window, or give them up if they would wait for longer than a window. Others may be sent
 * meanwhile, so there is no pause.
 */
async function tooEarly(to: Delivering, claimed: Claimed, said: Verdict, done: Done): Promise<void> {
  const { store, campaign, queue, making, log } = to;
  await release(store, campaign);
  const stream = streamOf(claimed);
  const window = claimed.reports[0]?.waiting.window ?? 0;
  if (making.arrivals.isFar(window, said.at ?? 0)) {
    drop(to, done, said.reason, await queue.remove(claimed.reports.map(({ key }) => key)), stream);
    return;
  }
  await queue.putOff(claimed.reports, Date.now() + pause(1, said.wait));
  log.add("again", claimed.reports.length, said.reason, stream);
}

/**
 * Turn reports of a closed epoch into their plain values, from which new reports are made; drop reports without a kept
 * value.
 */
async function closed(to: Delivering, claimed: Claimed, said: Verdict, done: Done): Promise<void> {
  const { queue, present } = to;
  const stream = streamOf(claimed);
  const kept = claimed.reports.some(({ waiting }) => waiting.value !== undefined);
  if (!done.asked) {
    // The campaign file is fetched even if no report is made again, because the next reports must be of the present
    // epoch.
    done.asked = true;
    done.maker = await present.refreshed("anyway");
  }
  const keys = claimed.reports.map(({ key }) => key);
  if (said.reason === "epoch_closed" && !kept) {
    drop(to, done, said.reason, await to.making.arrivals.settled(keys, said.at), stream);
    return;
  }
  const { fingerprint } = claimed.of;
  if (done.maker === undefined || done.maker.campaign.fingerprint === fingerprint) {
    // Try later: the collector is about to change epochs, or serves a campaign file for which it takes no reports.
    await again(to, claimed, said);
    return;
  }
  await to.making.arrivals.givenUp(stream, keys.length, said.at);
  for (const report of claimed.reports) {
    const plain = plainOf(report);
    if (plain === undefined) drop(to, done, said.reason, await queue.remove([report.key]), stream);
    else await queue.replace(report, [plain]);
  }
}

/** Make reports from plain values. */
async function makeAnew(to: Delivering, claimed: Claimed, done: Done): Promise<void> {
  const { maker } = done;
  if (maker === undefined) return;
  for (const [place, report] of claimed.reports.entries()) {
    const { value = "", by = {}, stream } = report.waiting;
    const streams = maker.campaign.streams.filter((each) => stream === "" || stream === each);
    const made = await madeOf(to, maker, streams, { value, by });
    if (made === "over_cap" || made === "no_valid_key") {
      // The cap is reached, or keys have expired. The other waiting values would fail too, and must not delay waiting
      // reports.
      done.makes = false;
      await to.queue.giveBack(claimed.reports.slice(place), Date.now() + UNTIL_MADE);
      to.log.add("again", claimed.reports.length - place, made);
      return;
    }
    if (typeof made === "string" || made.length === 0) {
      const reason = typeof made === "string" ? made : "unknown_stream";
      drop(to, done, reason, await to.queue.remove([report.key]), streamOf(claimed));
      continue;
    }
    const queued = await to.queue.replace(report, made);
    to.making.onQueued(queued);
    done.remade += queued.length;
    done.added += Math.max(0, queued.length - 1);
    to.log.add("remade", made.length);
  }
}

async function madeOf(
  to: Delivering,
  maker: Maker,
  streams: readonly Stream[],
  measurement: Measurement,
): Promise<readonly Waiting[] | "over_cap" | "no_valid_key" | "budget_spent" | "not_asked"> {
  try {
    const wishes = streams.map((stream) => ({ stream, measurement }));
    return await make(maker, wishes, { ...to.making, keepValues: true }, true);
  } catch (error) {
    if (error instanceof NotAsked) return "not_asked";
    if (error instanceof OverCap) return "over_cap";
    if (error instanceof Untrusted || error instanceof UsageError) return "no_valid_key";
    if (error instanceof BudgetSpent) return "budget_spent";
    throw error;
  }
}

function drop({ log }: Delivering, done: Done, reason: string, number: number, stream?: Stream): void {
  if (number === 0) return;
  done.dropped[reason] = (done.dropped[reason] ?? 0) + number;
  log.add("dropped", number, reason, stream);
}

function isPlain({ of }: Claimed): boolean {
  return of.fingerprint === "";
}

function streamOf({ of: { stream } }: Claimed): Stream | undefined {
  return stream === "" ? undefined : stream;
}

function plainOf({ waiting: { value, by = {}, stream, due, left } }: Queued): Waiting | undefined {
  // A report that left with a page may have arrived before the epoch was closed.
  return value === undefined || left !== undefined ? undefined : own<Waiting>({ fingerprint: "", stream, body: new Uint8Array(), value, by, due });
}
