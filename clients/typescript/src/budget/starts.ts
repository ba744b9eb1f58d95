/** When windows begin: by the list or the length of the campaign file, or by a length. All times are in milliseconds since 1970. */

import type { Terms } from "../trust/asked.js";

/** The range of years that windows may have. */
export const FIRST_YEAR = 1970;
export const LAST_YEAR = 8999;
const LAST = Date.UTC(LAST_YEAR, 11, 31);

/** When windows begin. Of a list, the first window is also before its start, and the last window has no end. */
export interface Starts {
  /** Return when the window of a moment begins; the moment may be of any wrong clock. */
  at(moment: number): number;
  /** Return when the window after that of a moment begins. */
  after(moment: number): number;
  /** The least length of a window: no two begin closer together. */
  readonly least: number;
}

/** @param given length of the windows of a campaign that states none, which tile time from 1970 on. */
export function startsOf(given: number, campaign?: Partial<Pick<Terms, "windows" | "noise">>): Starts {
  const seconds = campaign?.noise?.seconds;
  const length = seconds === undefined ? given : seconds * 1000;
  const listed = campaign?.windows?.starts.map((start) => start * 1000);
  const at = (moment: number): number => {
    const within = Math.min(Math.max(moment, 0), LAST);
    return listed === undefined
      ? Math.floor(within / length) * length
      : listed.reduce((last, start) => (start <= within ? start : last), listed[0] ?? 0);
  };
  const after = (moment: number): number =>
    listed === undefined ? at(moment) + length : (listed.find((start) => start > at(moment)) ?? LAST);
  const least = Math.min(...(listed ?? [0, length]).map((start, place, all) => (place === 0 ? Infinity : start - (all[place - 1] ?? 0))));
  return { at, after, least };
}
