/** Privacy costs as exact integers: in billionths of epsilon, and in units of 1e-18 for delta. */

/** Units of one epsilon, and of one delta, as powers of ten. */
export const EPSILON_DIGITS = 9;
export const DELTA_DIGITS = 18;
/** The greatest limit, an epsilon of a million; also used if no limit is set. */
export const MOST_EPSILON = 1_000_000;

/** Return `times / parts` of a double's decimal value in whole units, rounded up; 0.1 counts as exactly a tenth. */
export function costUnits(value: number, digits: number, times = 1, parts = 1): bigint {
  const [whole, scale] = decimal(value);
  return ceiling(whole * 10n ** BigInt(digits) * BigInt(times), scale * BigInt(parts));
}

/** Return a limit of epsilon in whole units, rounded down. */
export function limitUnits(value: number, digits: number): bigint {
  const [whole, scale] = decimal(Math.min(value, MOST_EPSILON));
  return (whole * 10n ** BigInt(digits)) / scale;
}

/** Return a number of units as a double. */
export function ofUnits(units: bigint, digits: number): number {
  return Number(`${String(units)}e-${String(digits)}`);
}

/** Return the decimal value of a finite number of at least 0 as `whole / scale`; the scale is a power of ten. */
function decimal(value: number): [whole: bigint, scale: bigint] {
  const [, whole = "0", fraction = "", exponent = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  const shift = Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return shift >= 0 ? [digits * 10n ** BigInt(shift), 1n] : [digits, 10n ** BigInt(-shift)];
}

function ceiling(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}
