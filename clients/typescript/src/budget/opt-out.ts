/**
 * Announces opt-outs to this page at once, and to other tabs of the origin by a message.
 *
 * If a browser lacks or forbids BroadcastChannel, other tabs read the opt-out in the store when they report or deliver.
 */

const CHANNEL = "hushcount/opt-out";
const listeners = new Set<() => void>();

/**
 * Tell all listeners that a person opted out or in again. Each listener reads in its own store whether the person opted
 * out there.
 */
export function tellOptOut(): void {
  for (const listener of listeners) listener();
  const channel = openChannel();
  channel?.postMessage(null);
  channel?.close();
}

/** Call the listener at each opt-out or opt-in, until the signal. */
export function hearOptOut(listener: () => void, until: AbortSignal): void {
  const channel = openChannel();
  // Without a call of `unref`, Node would wait for messages for ever. Browsers have no `unref`.
  (channel as { unref?: () => void } | undefined)?.unref?.();
  if (channel !== undefined) channel.onmessage = listener;
  listeners.add(listener);
  until.addEventListener("abort", () => {
    listeners.delete(listener);
    channel?.close();
  });
}

function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(CHANNEL);
  } catch {
    // The browser lacks BroadcastChannel, or the person forbids sites to keep data.
    return undefined;
  }
}
