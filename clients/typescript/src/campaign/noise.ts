/** Checks the section of a campaign file on noise of the mixes. Only the clients of campaigns with noise load this module. */

import type { Form } from "./campaign.js";

/** The least and the greatest epsilon of a window. */
const EPSILON = [1e-4, 40] as const;
const LEAST_STEP = 1e-4;
const MOST_SECONDS = 366 * 86_400;
/** The most dummies that a mix adds to a batch, but for a chance of 1e-15. */
const MOST_DUMMIES = 2 ** 25;
/** The shares of epsilon of an item that loses reports, and of one that gains them. */
const SHARES = [0.6, 0.4] as const;

type Wrong = new (message: string) => Error;

/**
 * Check the section of a campaign that has one.
 *
 * @param items the number of cells, "other" included; undefined in the open domain.
 * @param publicStrata the number of public strata, 1 without public axes.
 * @param length the least length of a window that the app allows, in milliseconds.
 * @throws Wrong the section is wrong, or does not fit the others. Refused: its windows are shorter than the app allows.
 */
export function requireNoise(form: Form, items: number | undefined, publicStrata: number, length: number, Wrong: Wrong, Refused: Wrong): void {
  const { epsilon, delta, seconds, ...more } = form.noise as unknown as Readonly<Record<string, unknown>>;
  const isForm = isIn(epsilon, ...EPSILON) && isIn(delta, Number.MIN_VALUE, 1 - Number.EPSILON / 2) && Object.keys(more).length === 0;
  const isLong = seconds === undefined || (Number.isInteger(seconds) && isIn(seconds, 1, MOST_SECONDS));
  if (!isForm || !isLong || (seconds === undefined) === (form.windows === undefined)) {
    throw new Wrong("noise must have epsilon in 0.0001..40 and delta in (0, 1), and seconds in 1..31622400 unless windows are listed");
  }
  const alone = form.mechanismTerms === undefined && !form.memory && form.minimumBatch === 1 && publicStrata === 1;
  if (!alone || items === undefined || form.keys.auxServer === undefined) {
    throw new Wrong("noise needs a dictionary, the auxiliary server's key and minimum_batch 1, and no mechanism, memory or public axes");
  }
  if (!(mostDummies(epsilon, delta, form.cap, items) <= MOST_DUMMIES)) {
    throw new Wrong(`noise: epsilon or delta is too small for a cap of ${String(form.cap)} and ${String(items)} items`);
  }
  if (1000 * ((seconds as number | undefined) ?? Infinity) < length) {
    throw new Refused(
      `windows of campaign ${form.id} are of ${String(seconds)} s, the app allows none below ${String(length / 1000)} s: do not ` +
        "report to it, or give smaller windowSeconds",
    );
  }
}

function isIn(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && value >= least && value <= most;
}

/**
 * Return the most dummies that a mix adds to so many items, which is 8 standard deviations above the mean; NaN if epsilon
 * or delta is too small for the cap. The law of the dummies is in docs/wire-format.md.
 */
function mostDummies(epsilon: number, delta: number, cap: number, items: number): number {
  const [loss, gain] = SHARES.map((share) => (share * epsilon) / cap) as [number, number];
  const step = delta / (Math.expm1(cap * loss) / Math.expm1(loss));
  if (step * 2 ** 64 < 1 || epsilon / (2 * cap) < LEAST_STEP) return NaN;
  const [near, far] = [tail(loss, 0), tail(gain, 1)];
  const power = (step * (far[0] + near[0])) / (1 + step * Math.exp(-loss) * near[0]);
  const most = Math.max(cap - 1, Math.ceil(-Math.log(power) / loss));
  const cut = tail(loss, most + 1);
  const mass = near[0] - cut[0] + far[0];
  const mean = (near[1] - cut[1] - far[1]) / mass;
  const variance = (near[2] - cut[2] + far[2]) / mass - mean ** 2;
  return Math.ceil(items * (most - mean) + 8 * Math.sqrt(items * variance));
}

/** Return the sums of j**i exp(-j rate) over j >= start, for i = 0, 1, 2. */
function tail(rate: number, start: number): readonly [number, number, number] {
  const rest = -Math.expm1(-rate);
  const [mass, mean] = [Math.exp(-rate * start) / rest, (1 - rest) / rest];
  return [mass, mass * (start + mean), mass * (start ** 2 + 2 * start * mean + ((1 - rest) * (2 - rest)) / rest ** 2)];
}
