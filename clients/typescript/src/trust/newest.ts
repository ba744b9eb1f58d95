/** The newest epoch of each campaign that a client accepted: an older one, or another history, is refused for good. */

import { Untrusted } from "../errors.js";
import { valueOf, type Store } from "../store/store.js";
import type { Asked } from "./asked.js";
import type { CampaignLog } from "./campaign-log.js";

/** Keeps the head of each campaign's log as of the newest epoch that was accepted; all tabs share it. */
export class Newest {
  readonly #store: Store;

  /** @param store where the heads are kept; with one in memory the client takes an older epoch after the next start. */
  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Keep a campaign's head, durably, before anything is reported under it.
   *
   * @throws Untrusted it is of an older epoch, another file of the same one, or a later one that does not continue what
   *   was accepted: the log must lead there if an epoch was missed.
   */
  keep(campaign: Asked, log?: CampaignLog): Promise<void> {
    const key = `newest/${campaign.id}`;
    return this.#store.change([key], ([found]) => {
      const last = valueOf(found) as { readonly epoch: number; readonly head: string } | undefined;
      if (last !== undefined) requireContinued(campaign, last, log);
      return { put: [[key, { epoch: campaign.epoch, head: campaign.head }]], result: undefined };
    });
  }
}

function requireContinued(
  campaign: Asked,
  last: { readonly epoch: number; readonly head: string },
  log: CampaignLog | undefined,
): void {
  const name = `epoch ${String(campaign.epoch)} of campaign ${campaign.id}`;
  const before = `epoch ${String(last.epoch)}, which was accepted before`;
  if (campaign.epoch < last.epoch) throw new Untrusted(`${name} is older than ${before}: fetch the newest`);
  if (campaign.epoch === last.epoch && campaign.head !== last.head) {
    throw new Untrusted(
      `${name} is another file than the one that was accepted before: one of the two was made for a few clients only, ` +
        "ask the operator",
    );
  }
  if (campaign.epoch > last.epoch && !headsFrom(last.head, log).includes(campaign.previous ?? "")) {
    throw new Untrusted(
      `${name} does not continue ${before}: give the campaign's log, and if it does not lead from there, ask the operator`,
    );
  }
}

/** Return a head and those that follow it in the log, if the log has it. */
function headsFrom(head: string, log: CampaignLog | undefined): readonly string[] {
  const place = log?.heads.indexOf(head) ?? -1;
  return log === undefined || place < 0 ? [head] : log.heads.slice(place);
}
