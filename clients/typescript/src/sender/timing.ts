/** Waiting times: a random delay that hides when a value was used, and growing pauses after failures. */

import { freshBytes } from "../maths/words.js";

/**
 * In milliseconds. A longer Retry-After of the other side counts as this time, so that the other side cannot stop a
 * client for good.
 */
export const LONGEST_WAIT = 86_400_000;
const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 3_600_000;
const DRAWS = 2 ** 32;

/**
 * Return whether a kept time is in the future, by at most `most` milliseconds.
 *
 * A time that is further in the future was kept before the clock was set back, and counts as past. So a kept time never
 * causes a wait of more than `most`.
 */
export function isAhead(time: number, now: number, most: number): boolean {
  return time > now && time <= now + most;
}

/** Draw from 0 to `most` milliseconds, uniformly, by the browser's cryptographic generator. */
export function randomTime(most: number): number {
  const [drawn = 0] = new Uint32Array(freshBytes(4).buffer);
  return Math.floor((drawn / DRAWS) * (most + 1));
}

/**
 * Return the milliseconds until the next attempt after this number of failures in a row, at least 1.
 *
 * The pause doubles with each failure, up to an hour. Half of the pause is random, so that clients that failed at the
 * same time do not return at the same time. `asked` is the other side's Retry-After. The result is at most a day.
 */
export function pause(failures: number, asked: number): number {
  const whole = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures - 1, 20));
  return Math.min(Math.max(asked, 0), LONGEST_WAIT - whole) + whole / 2 + randomTime(whole / 2);
}

/** Return the milliseconds of a Retry-After, at most a day; 0 for a date, because the two clocks may differ. */
export function retryAfter(header: string | null): number {
  return header !== null && /^\d+$/.test(header) ? Math.min(Number(header) * 1000, LONGEST_WAIT) : 0;
}

/** Wait for a promise, but at most `time` milliseconds. */
export async function atMost(promise: Promise<void>, time: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time);
  });
  await Promise.race([promise, over]);
  clearTimeout(timer);
}
