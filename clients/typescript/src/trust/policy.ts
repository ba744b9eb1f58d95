/** The demands on a campaign before a client reports to it: the app's limits, and the keys that the app trusts. */

import { FormatError, SignatureError, Untrusted, UsageError } from "../errors.js";
import { booleanOf, fieldsOf, IDENTIFIER, listOf, numberOf, textOf, type Fields } from "../fields.js";
import type { Asked, NoiseTerms, Terms, UrlTerms } from "./asked.js";
import type { CampaignLog } from "./campaign-log.js";
import { verifyCampaign, type CampaignSignature } from "./delegation.js";
import { Newest } from "./newest.js";
import { own } from "../own.js";
import { MOST_LAYERS, shareOf } from "./sample.js";
import { parseVerifyKey, type VerifyKey } from "./signatures.js";

const MOST_KEYS = 100;
const DICTIONARY_BYTES = 2 ** 25;
const LEAST_SHARE = 0.01;
const MOST_AXES = 8;
const MOST_HOSTS = 1000;
const TAKEN = ["site", "host", "path", "text"];
const HOST = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,9}$/;
const NAME = "the policy";
/**
 * Only the functions here that make policies have this value, because in JavaScript even a private constructor can be
 * called.
 */
const INSIDE = Symbol("policy");

/** The content of `policy.json`, which an app ships; clients in all languages read the same format. */
export interface PolicyTerms {
  /** The id of the only allowed campaign. */
  readonly campaignId: string;
  /** The keys that may sign the campaign, or delegate it to a publisher. */
  readonly operatorKeys: readonly VerifyKey[];
  /**
   * Limits the cost of a window's frequency reports, cap times epsilon; with memory, the cost of an epoch's frequency
   * reports.
   */
  readonly maxEpsilon: number;
  /** Limits the keep rule's epsilon, replace-one: twice the epsilon of add-remove. */
  readonly maxDiscoveryEpsilon: number;
  /** Limits epsilon of a window with noise of the mixes; 0 refuses such campaigns, whose reports are sealed, not randomised. */
  readonly maxNoiseEpsilon: number;
  /** Refuses discovery with keyed names, with which the auxiliary server and a client together can test guesses. */
  readonly oblivious: boolean;
  /** Limits discovery's delta, replace-one, and the delta of statements about shuffling. */
  readonly maxDelta: number;
  /** The least allowed minimum batch. */
  readonly minBatch: number;
  /** The names of the app's layers, at most 3: a campaign may ask a sample in these layers only. */
  readonly layers: readonly string[];
  /** The least share of all clients that a sample may ask. */
  readonly leastShare: number;
  /** The most that a campaign may learn of an address: its site, host or path, or any text. */
  readonly take: string;
  /** The hosts of which a campaign may learn paths; other addresses count as "other". Paths of 2 segments need them. */
  readonly hosts: readonly string[];
  /** The names of the only private axes by which a campaign may break reports down. */
  readonly axes: readonly string[];
  /** The names of the only axes whose coordinates are told openly, and the most combinations of these coordinates. */
  readonly publicAxes: readonly string[];
  readonly publicStrata: number;
  /** The greatest length of a sealed report of either stream. */
  readonly maxReportBytes: number;
  /** The greatest length of a dictionary that a sender fetches and keeps, packed and unpacked. */
  readonly maxDictionaryBytes: number;
}

/**
 * The campaign that a client reports to, the keys that must sign it, and limits on its cost.
 *
 * Privacy: a policy limits the cost of a signed campaign. A policy cannot check whether the parties keep their
 * promises.
 */
export class Policy {
  readonly #terms: PolicyTerms | undefined;
  readonly #newest: Newest | undefined;

  private constructor(inside: typeof INSIDE, terms?: PolicyTerms, newest?: Newest) {
    if (inside !== INSIDE) throw new UsageError("a policy must come from Policy.parse, or for tests Policy.trusting");
    this.#terms = terms;
    this.#newest = newest;
  }

  /**
   * Read the data of `policy.json`.
   *
   * @param newest keeps the newest epoch that the client accepted.
   * @throws FormatError, which names the field. UsageError: `newest` is missing, so an older epoch would be accepted.
   */
  static parse(data: unknown, newest: Newest): Policy {
    if (!(newest instanceof Newest)) throw new UsageError("newest must be a Newest: give new Newest(store)");
    return new Policy(INSIDE, termsOf(data), newest);
  }

  /** Return a policy that accepts any campaign file: only for simulations and tests, without data of people. */
  static trusting(): Policy {
    return new Policy(INSIDE);
  }

  /** The campaign of this policy; undefined if it accepts any. */
  get campaignId(): string | undefined {
    return this.#terms?.campaignId;
  }

  /** The greatest length of a dictionary that is fetched. */
  get maxDictionaryBytes(): number {
    return this.#terms?.maxDictionaryBytes ?? DICTIONARY_BYTES;
  }

  /** Return the only hosts of which a campaign learns addresses; undefined if it learns those of all. */
  hostsFor({ url }: Terms): ReadonlySet<string> | undefined {
    const hosts = this.#terms?.hosts ?? [];
    return url?.take === "path" && hosts.length > 0 ? new Set(hosts) : undefined;
  }

  /**
   * Check a campaign, except the length of its reports, before any file that it names is fetched.
   *
   * @returns when the first of the keys that vouch expires.
   * @throws Untrusted the campaign breaks the policy, or is unsigned.
   */
  async check(campaign: Terms, signature: CampaignSignature | undefined, now: number = Date.now()): Promise<number> {
    if (this.#terms === undefined) return Infinity;
    const vouching = await vouchingFor(this.#terms, campaign, signature, now);
    requireWithin(this.#terms, campaign);
    requireSample(this.#terms, campaign);
    requireTaken(this.#terms, campaign);
    requireAxes(this.#terms, campaign);
    if (needsHosts(campaign.url) && this.#terms.hosts.length === 0) {
      throw new Untrusted(
        `campaign ${campaign.id} takes several segments of the path of addresses, the policy names no hosts: do not ` +
          "report to it, or add to hosts those of which it may learn paths",
      );
    }
    return Math.min(...vouching.map(({ notAfter }) => notAfter));
  }

  /**
   * Check a campaign, and keep its head durably as the newest.
   *
   * @param log the campaign's log; needed if the client missed an epoch.
   * @param now the time of the check, in milliseconds since 1970.
   * @returns when the first of the keys that vouch expires.
   * @throws Untrusted the campaign breaks the policy, is unsigned, or does not continue the accepted epochs.
   */
  async accept(
    campaign: Asked,
    signature: CampaignSignature | undefined,
    log?: CampaignLog,
    now: number = Date.now(),
  ): Promise<number> {
    const until = await this.check(campaign, signature, now);
    if (this.#terms === undefined) return until;
    const longest = Math.max(...campaign.streams.map((stream) => campaign.sealedBytes(stream)));
    requireAtMost(campaign, "length of a report in bytes", longest, "max_report_bytes", this.#terms.maxReportBytes);
    requireAtMost(campaign, "number of public strata", campaign.publicStrata, "public_strata", this.#terms.publicStrata);
    await this.#newest?.keep(campaign, log, signature);
    return until;
  }
}

function termsOf(data: unknown): PolicyTerms {
  const limits = { max_discovery_epsilon: 0, max_noise_epsilon: 0, oblivious: false, max_delta: 1e-6, min_batch: 1000, layers: [], least_share: LEAST_SHARE, take: "text", hosts: [], axes: [], public_axes: [], public_strata: 64 };
  const optional = { format: 1, ...limits, max_report_bytes: 16384, max_dictionary_bytes: DICTIONARY_BYTES };
  const needed = ["campaign_id", "operator_keys", "max_epsilon"];
  const fields = { ...optional, ...fieldsOf(data, NAME, needed, Object.keys(optional)) };
  numberOf(fields, "format", [1, 1], NAME);
  const keys = listOf(fields, "operator_keys", MOST_KEYS, NAME);
  if (keys.length === 0) throw new FormatError(`${NAME}: operator_keys must hold at least 1`);
  return {
    campaignId: textOf(fields, "campaign_id", IDENTIFIER, NAME),
    operatorKeys: keys.map((key) => parseVerifyKey(key, `${NAME}: operator_keys`)),
    maxEpsilon: numberOf(fields, "max_epsilon", [0, Number.MAX_VALUE], NAME),
    maxDiscoveryEpsilon: numberOf(fields, "max_discovery_epsilon", [0, Number.MAX_VALUE], NAME),
    maxNoiseEpsilon: numberOf(fields, "max_noise_epsilon", [0, Number.MAX_VALUE], NAME),
    oblivious: booleanOf(fields, "oblivious", NAME),
    maxDelta: numberOf(fields, "max_delta", [0, 1 - Number.EPSILON / 2], NAME),
    minBatch: numberOf(fields, "min_batch", [1, 1e12], NAME, true),
    layers: listOf(fields, "layers", MOST_LAYERS, NAME).map((layer) => textOf(own({ layer }), "layer", IDENTIFIER, NAME)),
    leastShare: numberOf(fields, "least_share", [LEAST_SHARE, 1], NAME),
    take: textOf(fields, "take", /^(?:site|host|path|text)$/, NAME),
    hosts: listOf(fields, "hosts", MOST_HOSTS, NAME).map((host) => textOf(own({ host }), "host", HOST, NAME)),
    axes: axesOf(fields, "axes"),
    publicAxes: axesOf(fields, "public_axes"),
    publicStrata: numberOf(fields, "public_strata", [1, 4096], NAME, true),
    maxReportBytes: numberOf(fields, "max_report_bytes", [1, 2 ** 30], NAME, true),
    maxDictionaryBytes: numberOf(fields, "max_dictionary_bytes", [1, 2 ** 28], NAME, true),
  };
}

function axesOf(fields: Fields, field: string): readonly string[] {
  return listOf(fields, field, MOST_AXES, NAME).map((axis) => textOf(own({ axis }), "axis", IDENTIFIER, NAME));
}

/** Require that a campaign learns no more of an address than the policy allows; numbers tell no more than a site. */
function requireTaken({ take }: PolicyTerms, { id, url, takesNumbers }: Terms): void {
  const taken = url?.take ?? (takesNumbers ? "site" : "text");
  if (TAKEN.indexOf(taken) <= TAKEN.indexOf(take)) return;
  throw new Untrusted(
    `campaign ${id} takes the ${taken} of a value, the policy allows at most the ${take}: do not report to it, or change ` +
      "take in the policy",
  );
}

/** Require that a campaign breaks reports down by no other axes than the policy names; the section is not checked yet. */
function requireAxes({ axes, publicAxes }: PolicyTerms, campaign: Terms): void {
  const listed = campaign.axes?.listed;
  const found = Array.isArray(listed) ? listed.map((axis) => own(axis as Listed | null)) : [own<Partial<Listed>>({})];
  const isAllowed = ({ name, public: told }: Partial<Listed>): boolean =>
    typeof name === "string" && (told === true ? publicAxes : axes).includes(name);
  if (campaign.axes === undefined || found.every(isAllowed)) return;
  throw new Untrusted(
    `campaign ${campaign.id} breaks reports down by an axis that the policy does not name: do not report to it, or add ` +
      "the axis to axes or public_axes in the policy",
  );
}

/** An axis of a campaign file, before it is checked. */
type Listed = Readonly<Record<"name" | "public", unknown>>;

function needsHosts(url: UrlTerms | undefined): boolean {
  return (url?.segments ?? 0) > 1;
}

async function vouchingFor(
  { campaignId, operatorKeys }: PolicyTerms,
  campaign: Terms,
  signature: CampaignSignature | undefined,
  now: number,
): Promise<readonly VerifyKey[]> {
  if (campaign.id !== campaignId) {
    throw new Untrusted(
      `campaign is ${campaign.id}, the policy is for ${campaignId}: give the campaign's own policy`,
    );
  }
  if (signature === undefined) {
    throw new Untrusted(
      `campaign ${campaign.id} is unsigned, must be signed by the operator: put its signature beside the file, with ` +
        ".sig after its name",
    );
  }
  try {
    return await verifyCampaign(operatorKeys, campaign, signature, now);
  } catch (error) {
    throw error instanceof SignatureError ? new Untrusted(error.message) : error;
  }
}

function requireWithin(terms: PolicyTerms, campaign: Terms): void {
  const [times, span] = campaign.memory ? [campaign.memoryValues, "an epoch"] : [campaign.cap, "a window"];
  // The section on noise is not checked yet: what is no number is not within a limit.
  const noise = campaign.noise ?? own<NoiseTerms>({ epsilon: 0, delta: 0 });
  const delta = Math.max(campaign.discovery.delta, campaign.shuffleDelta, noise.delta);
  const compared: readonly (readonly [name: string, value: number, field: string, limit: number])[] = [
    [`epsilon of a client's frequency reports in ${span}`, times * campaign.epsilon, "max_epsilon", terms.maxEpsilon],
    ["epsilon of noise of the mixes", noise.epsilon, "max_noise_epsilon", terms.maxNoiseEpsilon],
    ["epsilon of discovery", campaign.discovery.epsilon, "max_discovery_epsilon", terms.maxDiscoveryEpsilon],
    ["delta", delta, "max_delta", terms.maxDelta],
  ];
  for (const [name, value, field, limit] of compared) requireAtMost(campaign, name, value, field, limit);
  if (campaign.minimumBatch < terms.minBatch) {
    throw new Untrusted(
      `minimum batch of campaign ${campaign.id} is ${String(campaign.minimumBatch)}, the policy demands at least ` +
        `${String(terms.minBatch)}: do not report to it, or lower min_batch in the policy`,
    );
  }
  if (terms.oblivious && campaign.streams.includes("discovery") && campaign.evaluatorKey === undefined) {
    throw new Untrusted(
      `names of campaign ${campaign.id} are keyed, the policy demands oblivious ones: do not report to it, or set ` +
        "oblivious to false in the policy",
    );
  }
}

function requireSample({ layers, leastShare }: PolicyTerms, { id, sample }: Terms): void {
  if (sample === undefined) return;
  if (!layers.includes(sample.layer)) {
    throw new Untrusted(
      `campaign ${id} asks a sample in layer ${sample.layer}, the policy allows ${layers.join(" and ") || "no sample"}: ` +
        "do not report to it, or add the layer to the policy",
    );
  }
  if (shareOf(sample) < leastShare) {
    throw new Untrusted(
      `campaign ${id} asks ${String(shareOf(sample))} of all clients, the policy demands at least ` +
        `${String(leastShare)}: do not report to it, or lower least_share in the policy`,
    );
  }
}

function requireAtMost({ id }: Terms, name: string, value: number, field: string, limit: number): void {
  // The test is not `value > limit`, which is false for NaN.
  if (value <= limit) return;
  throw new Untrusted(
    `${name} of campaign ${id} is ${String(value)}, the policy allows at most ${String(limit)}: do not report to it, ` +
      `or raise ${field} in the policy if that is what you promise your users`,
  );
}
