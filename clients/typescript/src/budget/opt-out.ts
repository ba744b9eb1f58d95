/**
 * News of opt-outs: to all of this page at once, to other tabs of the origin by a message.
 *
 * Where a browser has or permits no BroadcastChannel, other tabs read it in the store, each time that they report or deliver.
 */

const CHANNEL = "hushcount/opt-out";
const listeners = new Set<() => void>();

/** Tell all who hold reports that a person opted out or in again; whose store it was, they read there. */
export function tellOptOut(): void {
  for (const listener of listeners) listener();
  const channel = openChannel();
  channel?.postMessage(null);
  channel?.close();
}

/** Call back at such news, until the signal. */
export function hearOptOut(listener: () => void, until: AbortSignal): void {
  const channel = openChannel();
  // Node would wait for messages for ever; a browser has no such method.
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
    // It is not there, or a person forbids sites to keep data.
    return undefined;
  }
}
