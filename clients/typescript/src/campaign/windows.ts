/** Checks the section of a campaign file on windows. Only the clients of campaigns with such a section load this module. */

import type { Terms } from "../trust/asked.js";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** The usual length of a window of each unit, and the least and the greatest, in seconds: zones set their clocks. */
const SPANS: Readonly<Record<string, readonly [usual: number, least: number, most: number]>> = {
  day: [DAY, 17 * HOUR, 2 * DAY],
  week: [7 * DAY, 7 * DAY - 7 * HOUR, 8 * DAY],
  month: [28 * DAY, 28 * DAY - 7 * HOUR, 32 * DAY],
};
const LAST = Date.UTC(8999, 11, 31) / 1000;

type Wrong = new (message: string) => Error;

/**
 * Check the section of a campaign that has one.
 *
 * @param length the least length of a window that the app allows, in milliseconds.
 * @throws Wrong the section is no list of windows of one unit. Refused: its windows are shorter than the app allows.
 */
export function requireWindows(
  { id, windows, passes }: Pick<Terms, "id" | "windows" | "passes">,
  length: number,
  Wrong: Wrong,
  Refused: Wrong,
): void {
  if (windows === undefined) return;
  const { unit, starts, ...more } = { ...(windows as Partial<NonNullable<Terms["windows"]>> | null) };
  const span = typeof unit === "string" && Object.hasOwn(SPANS, unit) ? SPANS[unit] : undefined;
  const isListed = Array.isArray(starts) && starts.length >= 2 && starts.length <= 500;
  if (span === undefined || !isListed || Object.keys(more).length > 0 || passes !== undefined) {
    throw new Wrong("windows must have a unit, day, week or month, and 2 to 500 starts, and no passes beside them");
  }
  const [usual, least, most] = span;
  const isStart = (start: unknown): boolean => Number.isInteger(start) && (start as number) >= 0 && (start as number) <= LAST;
  const isNext = (start: number, place: number): boolean => {
    const span = start - (starts[place - 1] ?? 0);
    return place === 0 || (span >= least && span <= most);
  };
  if (!starts.every(isStart) || !starts.every(isNext)) {
    throw new Wrong(`windows: starts must be seconds since 1970, each a ${String(unit)} after the one before`);
  }
  if (1000 * usual < length) {
    throw new Refused(
      `windows of campaign ${id} are ${String(unit)}s, the app allows none below ${String(length / 1000)} s: do not report to ` +
        "it, or give smaller windowSeconds",
    );
  }
}
