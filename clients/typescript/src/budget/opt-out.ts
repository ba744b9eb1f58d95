/** News of opt-outs: to all of this page at once, to other tabs of the origin by a message. */

const CHANNEL = "hushcount/opt-out";
const listeners = new Set<() => void>();

/** Tell all who hold reports that a person opted out or in again; whose store it was, they read there. */
export function tellOptOut(): void {
  for (const listener of listeners) listener();
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(null);
  channel.close();
}

/** Call back at such news, until the signal. */
export function hearOptOut(listener: () => void, until: AbortSignal): void {
  const channel = new BroadcastChannel(CHANNEL);
  // Node would wait for messages for ever; a browser has no such method.
  (channel as { unref?: () => void }).unref?.();
  channel.onmessage = listener;
  listeners.add(listener);
  until.addEventListener("abort", () => {
    listeners.delete(listener);
    channel.close();
  });
}
