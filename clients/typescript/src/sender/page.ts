/** The changes of a page that a sender reacts to. */

import { own } from "../own.js";

/** The reactions of a sender to changes of the page. */
export interface PageEvents {
  /** The page is hidden or closes. Its waiting reports should be sent now, because there may be no later moment. */
  readonly onLeave: () => void;
  /** The page is visible again. */
  readonly onReturn: () => void;
  /** The device is online again. */
  readonly onOnline: () => void;
}

/**
 * Call the reactions when the page changes, until the signal; in a worker, which has no page, only when the device is
 * online again.
 */
export function followPage(events: PageEvents, until: AbortSignal): void {
  const { onLeave, onReturn, onOnline } = events;
  const options = own({ signal: until });
  globalThis.addEventListener?.("online", onOnline, options);
  if (typeof document === "undefined") return;
  globalThis.addEventListener("pagehide", onLeave, options);
  globalThis.addEventListener("pageshow", onReturn, options);
  document.addEventListener(
    "visibilitychange",
    () => {
      if (document.visibilityState === "hidden") onLeave();
      else onReturn();
    },
    options,
  );
}
