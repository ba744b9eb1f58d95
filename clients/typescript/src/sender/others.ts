/** What the tabs of an origin tell each other of a campaign: that the person opted out. */

/** Call back when another tab tells to forget, until the signal. */
export function hearOthers(campaign: string, onForget: () => void, until: AbortSignal): void {
  const channel = new BroadcastChannel(nameOf(campaign));
  // Node would wait for messages for ever; a browser has no such method.
  (channel as { unref?: () => void }).unref?.();
  channel.onmessage = onForget;
  until.addEventListener("abort", () => {
    channel.close();
  });
}

/** Let no other tab send what it has noted for the moment when it goes. */
export function tellToForget(campaign: string): void {
  const channel = new BroadcastChannel(nameOf(campaign));
  channel.postMessage("forget");
  channel.close();
}

function nameOf(campaign: string): string {
  return `hushcount/${campaign}`;
}
