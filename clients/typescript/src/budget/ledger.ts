/** All charges of a budget, and the step that adds charges, which takes and returns plain data and keeps no state. */

import { BudgetSpent, FormatError, OptedOut } from "../errors.js";
import type { Value } from "../store/store.js";
import type { Asked, Stream } from "../trust/asked.js";
import { own } from "../own.js";
import { countOf, lastChanged, type Counts } from "./last-changed.js";
import { costUnits, DELTA_DIGITS, EPSILON_DIGITS, limitUnits, ofUnits } from "./units.js";

const DAY_LETTERS = 10;
const WHOLE_DELTA = 10n ** BigInt(DELTA_DIGITS);

/** The reports of a stream; frequency reports of a campaign with noise are sealed, and not randomised. */
export type Kind = Stream | "sealed";

/** The cost of the reports of one kind of a campaign, in units. */
export interface Line {
  readonly reports: number;
  readonly blank: number;
  readonly epsilon: bigint;
  readonly delta: bigint;
}

/** All charges; `lines` has the costs of each kind, by "campaign/kind". */
export interface Charged {
  /** Epsilon that was charged, by UTC day, such as 2026-11-23, for the last days that the clock showed. */
  readonly days: Counts<string, bigint>;
  readonly optedOut: boolean;
  readonly lines: Readonly<Record<string, Line>>;
}

/** The limits of a budget, and the behaviour once it is spent. */
export interface BudgetLimits {
  /** The largest epsilon that may be charged on a UTC day; infinity without a limit. */
  readonly perDay: number;
  /** Most epsilon ever. */
  readonly lifetime: number;
  /**
   * With "nothing", making a report throws BudgetSpent once the budget is spent. Missing reports then reveal that the
   * budget is spent.
   */
  readonly whenSpent: "other" | "nothing";
}

/**
 * The cost of one charge, replace-one, in units. A `lasting` charge pays for all reports of the epoch that repeat
 * answers.
 */
export interface Cost {
  readonly epsilon: bigint;
  readonly delta: bigint;
  readonly lasting: boolean;
}

/** A budget without charges. */
export const UNCHARGED: Charged = { days: [], optedOut: false, lines: {} };

/**
 * Return the cost of a report of the stream; this cost does not depend on the value.
 *
 * A frequency report costs its epsilon; with memory, all frequency reports of an epoch together cost `memoryValues`
 * times this epsilon. With noise, all frequency reports of a window cost the noise's (epsilon, delta), so each costs that
 * divided by the cap. A discovery report costs the (epsilon, delta) of the keep rule, replace-one.
 */
export function costOf(campaign: Asked, stream: Stream): Cost {
  const { discovery, noise, cap } = campaign;
  const paid = stream === "discovery" ? discovery : noise;
  if (paid !== undefined) {
    const parts = paid === noise ? cap : 1;
    return { epsilon: costUnits(paid.epsilon, EPSILON_DIGITS, 1, parts), delta: costUnits(paid.delta, DELTA_DIGITS, 1, parts), lasting: false };
  }
  const epsilon = costUnits(campaign.epsilon, EPSILON_DIGITS, campaign.memoryValues);
  return { epsilon, delta: 0n, lasting: campaign.memory };
}

/** Return the UTC day of a time. */
export function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, DAY_LETTERS);
}

/** Return the epsilon that was charged on a day. */
export function chargedOn({ days }: Charged, day: string): bigint {
  return countOf(days, day) ?? 0n;
}

/** Return the units that are left of the day's and of the lifetime's limit; 0 if a limit is below the spent amount. */
export function leftOf(charged: Charged, limits: BudgetLimits, day: string): readonly [today: bigint, ever: bigint] {
  const today = limitUnits(limits.perDay, EPSILON_DIGITS) - chargedOn(charged, day);
  const ever = limitUnits(limits.lifetime, EPSILON_DIGITS) - totalOf(charged);
  return [today > 0n ? today : 0n, ever > 0n ? ever : 0n];
}

/** Return all epsilon that was charged, in units. */
export function totalOf(charged: Charged): bigint {
  return Object.values(charged.lines).reduce((sum, { epsilon }) => sum + epsilon, 0n);
}

/** Reports that are about to be made. */
export interface Request {
  readonly campaign: Asked;
  readonly stream: Stream;
  readonly number: number;
  /** When the reports are due, in milliseconds since 1970, if they count in the window of this moment; undefined: now. */
  readonly due?: number | undefined;
  /** The client repeats an answer of this epoch, which was charged when it was drawn. */
  readonly repeats: boolean;
}

/**
 * Charge reports that are about to be made. Return how many of the reports may depend on values: the first of them, and
 * not the other reports.
 *
 * Of reports that repeat answers, either all may depend on values, or none. Nothing here depends on a value.
 *
 * @throws BudgetSpent not all reports fit into the budget, and the app then wants no reports.
 * @throws OptedOut the person opted out.
 */
export function charge(
  charged: Charged,
  limits: BudgetLimits,
  { campaign, stream, number, repeats }: Request,
  now: number,
): readonly [after: Charged, telling: number] {
  requireOptedIn(charged);
  const [day, cost] = [dayOf(now), costOf(campaign, stream)];
  const [today, ever] = leftOf(charged, limits, day);
  const [telling, charges] = fitting(cost, today < ever ? today : ever, number, repeats);
  if (telling < number && limits.whenSpent === "nothing") {
    throw new BudgetSpent(refusal(campaign, stream, number, cost, day, [today, ever]));
  }
  const kind: Kind = stream === "reports" && campaign.noise !== undefined ? "sealed" : stream;
  const key = `${campaign.id}/${kind}`;
  const old = own(charged.lines)[key] ?? { reports: 0, blank: 0, epsilon: 0n, delta: 0n };
  const delta = old.delta + charges * cost.delta;
  const line = {
    reports: old.reports + telling,
    blank: old.blank + number - telling,
    epsilon: old.epsilon + charges * cost.epsilon,
    delta: delta < WHOLE_DELTA ? delta : WHOLE_DELTA,
  };
  const days = lastChanged(charged.days, day, chargedOn(charged, day) + charges * cost.epsilon);
  return [{ ...charged, days, lines: { ...charged.lines, [key]: line } }, telling];
}

/** Throw OptedOut if the person opted out. */
export function requireOptedIn({ optedOut }: Pick<Charged, "optedOut">): void {
  if (!optedOut) return;
  throw new OptedOut("the person opted out: nothing is made until budget.optIn()");
}

/** Return how many reports may depend on values, and the number of charges for them. */
function fitting(cost: Cost, left: bigint, number: number, repeats: boolean): readonly [number, bigint] {
  if (cost.lasting) {
    const first = number > 0 && !repeats ? 1n : 0n;
    return first * cost.epsilon <= left ? [number, first] : [0, 0n];
  }
  const most = left / cost.epsilon;
  const telling = most < BigInt(number) ? Number(most) : number;
  return [telling, BigInt(telling)];
}

function refusal(
  { id }: Asked,
  stream: Stream,
  number: number,
  cost: Cost,
  day: string,
  [today, ever]: ReturnType<typeof leftOf>,
): string {
  const each = `${text(cost.epsilon)} ${cost.lasting ? "an epoch" : "each"}`;
  const where =
    today < ever
      ? `${text(today)} is left on ${day}: wait for the next day, UTC`
      : `${text(ever)} is left for the lifetime, which no day renews`;
  return `the budget does not allow ${String(number)} more ${stream} of campaign ${id} at epsilon ${each}: epsilon ${where}`;
}

function text(units: bigint): string {
  return String(ofUnits(units, EPSILON_DIGITS));
}

/** The stored form of charges: units are decimal digits. */
interface Kept {
  readonly format: number;
  readonly days: Counts<string, string>;
  readonly optedOut: boolean;
  readonly lines: Readonly<Record<string, Record<"reports" | "blank", number> & Record<"epsilon" | "delta", string>>>;
}

/** Return the charges as a record for a store. */
export function recordOf({ days, optedOut, lines }: Charged): Value {
  const kept = Object.entries(lines).map(
    ([key, { reports, blank, epsilon, delta }]) =>
      [key, { reports, blank, epsilon: String(epsilon), delta: String(delta) }] as const,
  );
  return { format: 1, days: days.map(([day, epsilon]) => [day, String(epsilon)]), optedOut, lines: Object.fromEntries(kept) };
}

/**
 * Read a record. Throws FormatError if the record is damaged or of another version; such a record is never replaced by
 * an empty record.
 */
export function chargedOf(record: Value | undefined): Charged {
  if (record === undefined) return UNCHARGED;
  try {
    const { format, days, optedOut, lines } = record as unknown as Kept;
    if (format !== 1) throw new RangeError();
    const read = Object.entries(lines).map(
      ([key, line]) => [key, { ...line, epsilon: BigInt(line.epsilon), delta: BigInt(line.delta) }] as const,
    );
    return { days: days.map(([day, epsilon]) => [day, BigInt(epsilon)] as const), optedOut, lines: Object.fromEntries(read) };
  } catch {
    throw new FormatError(
      "the budget's record is damaged or of another version: restore it; removing it would renew the budget, " +
        "although sent reports cannot be taken back",
    );
  }
}
