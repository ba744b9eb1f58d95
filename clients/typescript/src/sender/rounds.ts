/** The rounds of delivery of a page, one after the other. */

import { atMost } from "./timing.js";

const MINUTE = 60_000;

/** Starts a delivery whenever there is work for a delivery. */
export class Rounds {
  readonly #timeToWait: () => Promise<number>;
  readonly #deliver: () => Promise<void>;
  #wake: () => void = () => undefined;

  /**
   * `timeToWait` returns the milliseconds until there may be work for a delivery; neither `deliver` nor `timeToWait`
   * throws.
   */
  constructor(timeToWait: () => Promise<number>, deliver: () => Promise<void>) {
    this.#timeToWait = timeToWait;
    this.#deliver = deliver;
  }

  /** Check again, because something may now be due earlier. */
  wake(): void {
    this.#wake();
  }

  /** Run until the signal. */
  async run(until: AbortSignal): Promise<void> {
    let rest = 0;
    while (!until.aborted) {
      let called = false;
      const woken = new Promise<void>((resolve) => {
        this.#wake = () => {
          called = true;
          resolve();
        };
      });
      const wait = Math.max(await this.#timeToWait(), rest);
      if (wait > 0) {
        // The time is checked once a minute, because other tabs may queue reports, and the clock may change.
        await atMost(woken, Math.min(wait, MINUTE));
        rest = 0;
      } else {
        await this.#deliver();
        // Work that is still due, such as a value without a campaign file, is tried again later.
        const later = (await this.#timeToWait()) > 0;
        // If `wake` was called during the delivery, for example because the device is online again, the next round
        // starts now.
        rest = later || called ? 0 : MINUTE;
      }
    }
  }
}
