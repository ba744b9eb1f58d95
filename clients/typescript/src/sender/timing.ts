/** How long to wait: a random delay that hides when a value was used, and longer pauses after failures. */

import { freshBytes } from "../maths/words.js";

/** Milliseconds. What the other side asks for counts up to here, so that it cannot silence a client for good. */
export const LONGEST_WAIT = 86_400_000;
const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 3_600_000;
const DRAWS = 2 ** 32;

/**
 * Return whether a kept time lies ahead; it can be at most so far ahead.
 *
 * One that is further ahead was kept before the clock was set back, and counts as past: no kept time holds anything up for
 * longer than it may by its own law.
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
 * Return the milliseconds until the next attempt after so many failures in a row, at least 1.
 *
 * They double with each failure, to an hour at most. Half of them are drawn at random, so that clients which failed
 * together do not return together. `asked` is what the other side asked for by Retry-After. All together is a day at
 * most.
 */
export function pause(failures: number, asked: number): number {
  const whole = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures - 1, 20));
  return Math.min(Math.max(asked, 0), LONGEST_WAIT - whole) + whole / 2 + randomTime(whole / 2);
}

/** Return the milliseconds of a Retry-After, a day at most; 0 for a date, which would need two clocks that agree. */
export function retryAfter(header: string | null): number {
  return header !== null && /^\d+$/.test(header) ? Math.min(Number(header) * 1000, LONGEST_WAIT) : 0;
}

/** Wait for a promise, but not longer than so many milliseconds. */
export async function atMost(promise: Promise<void>, time: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time);
  });
  await Promise.race([promise, over]);
  clearTimeout(timer);
}
