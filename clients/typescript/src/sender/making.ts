/** Makes reports of values for the queue; each report is charged before it is made. */

import type { Budget } from "../budget/budget.js";
import type { Request } from "../budget/ledger.js";
import { startsOf } from "../budget/starts.js";
import type { PendingDiscovery } from "../discovery/oblivious.js";
import { own } from "../own.js";
import type { Issuer } from "../passes/asking.js";
import type { Store } from "../store/store.js";
import type { Asked, Stream } from "../trust/asked.js";
import { requireAsked } from "../trust/sample.js";
import type { Coordinates } from "../values/strata.js";
import type { Arrivals } from "./arrivals.js";
import type { Asking } from "./evaluations.js";
import type { Queued, Waiting } from "./queue.js";
import { randomTime } from "./timing.js";
import { collectorName } from "./token.js";

/** The longest stretch of work, in milliseconds, after which the page may do something else. */
const STRETCH = 8;

/** Makes the reports of one campaign file. It charges nothing. */
export interface Maker {
  readonly campaign: Asked;
  /** Throw unless the keys that vouch for the campaign, and the sealing keys of these streams, are valid. */
  requireValid(now: number, streams: readonly Stream[]): void;
  /** Return whether the memory has an answer of this epoch; false without a memory. */
  repeats(): Promise<boolean>;
  /**
   * Return a sealed frequency report; null gives a report of "other", drawn without the memory, which tells nothing. With
   * noise of the mixes it names the window of the moment `due`.
   */
  report(value: string | null, by?: Coordinates, due?: number): Promise<Uint8Array>;
  /** Return a sealed discovery report; null, or a value that is too long, gives a blank. */
  discoveryReport(value: string | null): Promise<Uint8Array>;
  /** Return the pending discovery report of a value, in an oblivious campaign. */
  pendingDiscovery(value: string | null): Promise<PendingDiscovery>;
}

/** What an app reports: a value as text, and the client's coordinates. */
export type Measurement = Readonly<{ value: string; by: Coordinates }>;

/** Values for reports, each with its stream. */
export interface Wish {
  readonly stream: Stream;
  readonly measurement: Measurement;
}

/** How reports are made: their cost is charged to the budget, and each is due after a random delay. */
export interface Making {
  /** Keeps the installation's id. */
  readonly store: Store;
  readonly budget: Budget;
  readonly arrivals: Arrivals;
  /** The length of the operator's windows; this length and the delay are in milliseconds. */
  readonly window: number;
  readonly delay: number;
  readonly keepValues: boolean;
  /** The collector's name, if the app gives it. */
  readonly siteName: string | undefined;
  /** Who gives the client its passes. */
  readonly issuer: Issuer | undefined;
  /** Load the module that asks an evaluator. */
  readonly askingOf: () => Promise<Asking>;
  /** Called with the reports that were made and queued. */
  readonly onQueued: (reports: readonly Queued[]) => void;
}

/**
 * Make the reports of some values. Either all reports are charged, in one step before the first report is made, or none
 * is charged.
 *
 * With noise of the mixes a report is made for the window in which it is due, and is given up once this window is over
 * (queue.ts): it would count in no other one.
 *
 * The page can do other work meanwhile, because each stretch of work ends with the first report after 8 milliseconds.
 *
 * @param anew the values are plain values that wait in the queue.
 * @throws NotAsked, OverCap, OptedOut, BudgetSpent, Untrusted: no report is made.
 */
export async function make(maker: Maker, wishes: readonly Wish[], making: Making, anew = false): Promise<Waiting[]> {
  const { campaign } = maker;
  const collector = collectorName(campaign, making.siteName);
  await requireAsked(making.store, campaign, Date.now());
  maker.requireValid(Date.now(), campaign.streams);
  const repeats = await maker.repeats();
  const asking = campaign.evaluatorKey !== undefined ? await making.askingOf() : undefined;
  const dues = wishes.map(() => Date.now() + randomTime(making.delay));
  const isBound = (stream: Stream): boolean => campaign.noise !== undefined && stream === "reports";
  const requests = campaign.streams.flatMap((stream): Request[] => {
    const [given, mine] = [{ campaign, stream, repeats }, dues.filter((_, place) => wishes[place]?.stream === stream)];
    return isBound(stream) ? mine.map((due) => ({ ...given, number: 1, due })) : [{ ...given, number: mine.length, due: undefined }];
  }).filter(({ number }) => number > 0);
  await making.arrivals.requireRoom(requests, anew);
  const telling = await making.budget.charge(requests, making.window);
  const left = new Map<Stream, number>();
  for (const [place, { stream }] of requests.entries()) left.set(stream, (left.get(stream) ?? 0) + (telling[place] ?? 0));
  const made: Waiting[] = [];
  let begun = performance.now();
  for (const [place, { stream, measurement }] of wishes.entries()) {
    const tells = left.get(stream) ?? 0;
    left.set(stream, tells - 1);
    const told = tells > 0 ? measurement.value : null;
    const pass = campaign.passes && { pass: true as const };
    const kept = { collector, cap: campaign.cap, ...pass, ...(making.keepValues ? measurement : {}) };
    if (stream === "discovery" && asking !== undefined) made.push(await asking.begin(maker, told, kept));
    else {
      const due = dues[place] ?? 0;
      const body = stream === "reports" ? await maker.report(told, measurement.by, due) : await maker.discoveryReport(told);
      const bound = isBound(stream) ? { window: startsOf(making.window, campaign).at(due), bound: true as const } : {};
      made.push(own<Waiting>({ fingerprint: campaign.fingerprint, stream, body, due, ...kept, ...bound }));
    }
    if (performance.now() - begun > STRETCH) {
      await nextTask();
      begun = performance.now();
    }
  }
  return made;
}

/** Let the page do waiting work, then continue. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
