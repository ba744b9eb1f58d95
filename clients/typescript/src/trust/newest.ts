/**
 * The newest epoch of each campaign that a client accepted: an older epoch, or another history, is refused.
 *
 * Only a statement that is signed with the operator's own key, and has a greater serial than all earlier statements,
 * allows another history.
 */

import { Untrusted } from "../errors.js";
import { own } from "../own.js";
import { valueOf, type Store } from "../store/store.js";
import type { Asked } from "./asked.js";
import { MOST_EPOCHS, type CampaignLog } from "./campaign-log.js";
import { serialOf, type CampaignSignature, type Delegation } from "./delegation.js";

interface Head {
  readonly epoch: number;
  readonly head: string;
  /** The greatest serial of the operator's statements. */
  readonly serial: number;
  /** Whether the campaign has noise of the mixes; absent in heads of earlier releases, which knew no noise. */
  readonly noise?: boolean;
}

/** Keeps the head of each campaign's log as of the newest epoch that was accepted; all tabs share it. */
export class Newest {
  readonly #store: Store;

  /** @param store keeps the heads; with a store in memory, the client accepts an older epoch after its next start. */
  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Keep a campaign's head durably, before anything is reported under this campaign file.
   *
   * @param log the campaign's log; needed if the client missed an epoch.
   * @param signature the campaign's verified signature. A restart in the signature replaces the accepted history if the
   *   restart is newer than the operator's earlier statements.
   * @throws Untrusted the campaign file is of an older epoch, or is another file of the same epoch; or only one of it and
   *   the accepted epoch has noise of the mixes; or it does not continue
   *   the accepted epoch, and if an epoch was missed, only the log can show this. Or the operator replaced the publisher
   *   that signed the file, or more epochs were missed than a log can hold.
   */
  keep(campaign: Asked, log?: CampaignLog, signature: Partial<CampaignSignature> = {}): Promise<void> {
    const key = `newest/${campaign.id}`;
    return this.#store.change([key], ([found]) => {
      const kept = valueOf(found) as Head | undefined;
      const noise = campaign.noise !== undefined;
      if (kept !== undefined && (own(kept).noise ?? false) !== noise) {
        throw new Untrusted(
          `epoch ${String(campaign.epoch)} of campaign ${campaign.id} has ${noise ? "noise" : "no noise"} of the mixes, unlike ` +
            `epoch ${String(kept.epoch)}, which was accepted before: ask the operator for another campaign`,
        );
      }
      const last = lastOf(kept, signature);
      if (last !== undefined) requireContinued(campaign, last, signature.delegation, log);
      const serial = Math.max(serialOf(signature), last?.serial ?? 0);
      return { put: [[key, { epoch: campaign.epoch, head: campaign.head, serial, ...(noise && { noise }) }]], result: undefined };
    });
  }
}

/** Return the head that a campaign must continue: the kept head, or the head of the operator's restart. */
function lastOf(kept: Head | undefined, signature: Partial<CampaignSignature>): Head | undefined {
  if (kept === undefined) return undefined;
  const { restart } = own(signature);
  return restart !== undefined && restart.serial > kept.serial ? restart : kept;
}

function requireContinued(
  campaign: Asked,
  last: Head,
  delegation: Delegation | undefined,
  log: CampaignLog | undefined,
): void {
  const name = `epoch ${String(campaign.epoch)} of campaign ${campaign.id}`;
  const before = `epoch ${String(last.epoch)}, which was accepted before`;
  if (delegation !== undefined && delegation.serial < last.serial) {
    throw new Untrusted(
      `${name} was signed under the delegation ${String(delegation.serial)}, but the operator's newest serial is ` +
        `${String(last.serial)}: fetch the newest file`,
    );
  }
  if (delegation !== undefined && campaign.epoch - last.epoch > MOST_EPOCHS) {
    throw new Untrusted(`${name} is more than ${String(MOST_EPOCHS)} epochs after ${before}: the operator must sign it`);
  }
  if (campaign.epoch < last.epoch) throw new Untrusted(`${name} is older than ${before}: fetch the newest file`);
  if (campaign.epoch === last.epoch && campaign.head !== last.head) {
    throw new Untrusted(
      `${name} is another file than the one that was accepted before: one of the two may have been made for ` +
        "a few clients only; ask the operator",
    );
  }
  if (campaign.epoch > last.epoch && !headsFrom(last.head, log).includes(campaign.previous ?? "")) {
    throw new Untrusted(
      `${name} does not continue ${before}: give the campaign's log; if the log does not connect the two epochs, ask the operator`,
    );
  }
}

/** Return a head and all later heads in the log, if the log has the head. */
function headsFrom(head: string, log: CampaignLog | undefined): readonly string[] {
  const place = log?.heads.indexOf(head) ?? -1;
  return log === undefined || place < 0 ? [head] : log.heads.slice(place);
}
