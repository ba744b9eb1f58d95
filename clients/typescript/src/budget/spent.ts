/** The cost of a client's reports so far, as data, and in sentences that an app can show to the person. */

import { own } from "../own.js";
import { chargedOn, dayOf, leftOf, totalOf, type BudgetLimits, type Charged, type Kind } from "./ledger.js";
import { DELTA_DIGITS, EPSILON_DIGITS, ofUnits } from "./units.js";

/** The probability that the change of odds exceeds the stated change is at most this multiple of delta. */
const ROOM = 10;
const LARGEST_EXPONENT = 700;

/** The words for reports of each kind, and for what they are made. */
const WORDS: Readonly<Record<Kind, readonly [kind: string, more: string, purpose: string]>> = {
  reports: ["blurred", "", "to count values"],
  sealed: ["sealed", ", not randomised,", "to count values"],
  discovery: ["sealed", "", "to find values that are on no list"],
};

/** The cost of the reports of one kind of a campaign, over all its epochs. */
export interface StreamSpent {
  readonly campaign: string;
  /** "sealed" are frequency reports of a campaign with noise, which are not randomised. */
  readonly stream: Kind;
  /** The number of reports that were charged, or that repeat a charged answer. */
  readonly reports: number;
  /** The number of further reports, which tell nothing about a value, because the budget was spent. */
  readonly blank: number;
  /** The sums of epsilon and delta over the charged reports, replace-one. */
  readonly epsilon: number;
  readonly delta: number;
}

/** The cost of all reports under one budget, and the remaining budget. */
export interface Spent {
  readonly streams: readonly StreamSpent[];
  /** The UTC day that the device's clock shows, as in 2026-11-23. */
  readonly day: string;
  /** Epsilon charged on the UTC day `day`. */
  readonly today: number;
  /** The total charge: all sent reports together are (epsilon, delta)-private, replace-one. */
  readonly epsilon: number;
  readonly delta: number;
  /** The limits of epsilon; infinity means that there is no limit. */
  readonly perDay: number;
  readonly lifetime: number;
  /** Epsilon that may still be charged on the UTC day `day`, and in total. */
  readonly leftToday: number;
  readonly left: number;
  /** Whether no reports are made once the budget is spent, instead of reports that tell nothing. */
  readonly silent: boolean;
  readonly optedOut: boolean;
  /**
   * Return sentences for the person. Each sentence is true by itself, and its figures are rounded so that the sentence
   * never promises too much.
   */
  words(): string[];
}

/** Return the spent budget at a time in milliseconds since 1970. */
export function spentOf(charged: Charged, limits: BudgetLimits, now: number): Spent {
  const day = dayOf(now);
  const streams = Object.entries(charged.lines)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, { reports, blank, epsilon, delta }]) => {
      const [campaign = "", stream = ""] = key.split("/");
      return {
        campaign,
        stream: stream as Kind,
        reports,
        blank,
        epsilon: ofUnits(epsilon, EPSILON_DIGITS),
        delta: ofUnits(delta, DELTA_DIGITS),
      };
    });
  const delta = Object.values(charged.lines).reduce((sum, line) => sum + line.delta, 0n);
  const [today, ever] = leftOf(charged, limits, day);
  const { perDay, lifetime } = limits;
  const spent = {
    streams,
    day,
    today: ofUnits(chargedOn(charged, day), EPSILON_DIGITS),
    epsilon: ofUnits(totalOf(charged), EPSILON_DIGITS),
    delta: Math.min(1, ofUnits(delta, DELTA_DIGITS)),
    perDay,
    lifetime,
    leftToday: Math.min(perDay, lifetime) === Infinity ? Infinity : ofUnits(today < ever ? today : ever, EPSILON_DIGITS),
    left: lifetime === Infinity ? Infinity : ofUnits(ever, EPSILON_DIGITS),
    silent: limits.whenSpent === "nothing",
    optedOut: charged.optedOut,
  };
  return { ...spent, words: () => wordsOf(spent) };
}

function wordsOf(spent: Omit<Spent, "words">): string[] {
  const { epsilon, delta, day } = spent;
  // Reports that repeat an answer that was charged before may still be made.
  const instead = spent.silent ? "that tells more of you is made" : "tells more of you, although some are sent";
  return [
    ...(spent.optedOut ? ["You opted out: this device makes no report until you opt in again."] : []),
    ...spent.streams.flatMap(wordsOfStream),
    epsilon > 0
      ? `All reports together change the odds that you sent one value rather than another by ${odds(epsilon, delta)}, ` +
        `${conditionOf(spent.streams)}.`
      : "No report of this device has told anything of you yet.",
    limitWords(`On ${day} (UTC)`, "a day", spent.today, spent.perDay, spent.leftToday),
    limitWords("Altogether", "the lifetime of this app", epsilon, spent.lifetime, spent.left),
    ...(Math.min(spent.perDay, spent.lifetime) < Infinity
      ? [`When too little is left for a report, no report ${instead}.`]
      : []),
  ];
}

function wordsOfStream({ campaign, stream, reports, blank, epsilon, delta }: StreamSpent): string[] {
  const [kind, more, purpose] = WORDS[stream];
  const alsoDelta = delta > 0 ? ` and delta ${String(roundedUp(delta, 4))}` : "";
  return [
    ...(reports > 0
      ? [
          `Campaign ${campaign}: this device made ${counted(reports, `${kind} report`)}${more} ${purpose}, for epsilon ` +
            `${epsilonText(epsilon)}${alsoDelta}.`,
        ]
      : []),
    ...(blank > 0
      ? [
          `Campaign ${campaign}: ${counted(blank, "report")} ${purpose} told nothing of you, because the budget was spent.`,
        ]
      : []),
  ];
}

function conditionOf(streams: readonly StreamSpent[]): string {
  const has = (kind: Kind): boolean => streams.some(({ stream, epsilon }) => stream === kind && epsilon > 0);
  if (has("discovery")) return "as long as the parties that handle them keep to their roles";
  if (has("sealed")) return "as long as one of the two parties that mix them keeps to its role";
  return "even if all parties that handle them broke their promises together";
}

function limitWords(when: string, span: string, spent: number, limit: number, left: number): string {
  return limit === Infinity
    ? `${when} epsilon ${epsilonText(spent)} was spent; no limit is set for ${span}.`
    : `${when} epsilon ${epsilonText(spent)} of ${epsilonText(limit)} was spent, and ${epsilonText(left)} is left.`;
}

/**
 * Return the largest change of odds under (epsilon, delta), and the probability that the change is larger (odds.py).
 */
function odds(epsilon: number, delta: number): string {
  if (delta === 0) return factor(epsilon);
  const chance = Math.min(ROOM * delta, 1 - Number.EPSILON / 2);
  const loss =
    delta >= chance ? Infinity : epsilon + Math.log((chance + delta * Math.exp(-epsilon)) / (chance - delta));
  const whole = String(Math.floor(1 / chance));
  const rounded = Number(whole.slice(0, 2).padEnd(whole.length, "0"));
  return `${factor(loss)}, except with a chance of 1 in ${rounded.toLocaleString("en", own({}))}`;
}

function factor(epsilon: number): string {
  const gain = Math.expm1(epsilon);
  if (gain < 1) return `${String(roundedUp(100 * gain, 2))} % at most`;
  if (epsilon >= LARGEST_EXPONENT) return "any factor";
  return `a factor of ${roundedUp(gain + 1, 3).toLocaleString("en", own({ useGrouping: false }))} at most`;
}

/** Round a positive number up to this number of significant digits. */
function roundedUp(value: number, digits: number): number {
  const near = Number(value.toPrecision(digits));
  const step = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return near >= value ? near : Number((near + step).toPrecision(digits));
}

function counted(number: number, what: string): string {
  return `${number.toLocaleString("en", own({}))} ${what}${number === 1 ? "" : "s"}`;
}

/** Return an epsilon, a whole number of billionths, in its exact decimal digits. */
function epsilonText(value: number): string {
  return value.toLocaleString("en", own({ maximumFractionDigits: EPSILON_DIGITS }));
}
