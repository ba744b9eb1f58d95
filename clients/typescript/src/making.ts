/**
 * Makes the reports of one checked campaign file: it turns a value into a sealed report; all reports of a stream have
 * one length.
 */

import { blake2b, bytesOf, concat, hex, unhex } from "./bytes.js";
import { startsOf } from "./budget/starts.js";
import { WINDOW_BYTES, type Campaign } from "./campaign/campaign.js";
import type { PublicKey } from "./campaign/sections.js";
import type { Oblivious, PendingDiscovery } from "./discovery/oblivious.js";
import { blankName, discoveryReport, isTooLong, keyedName, type DiscoveryFormat, type Name } from "./discovery/report.js";
import { FormatError, HushcountError, NoValidKey, Untrusted, UsageError } from "./errors.js";
import { part } from "./loading.js";
import { freshBytes, octetsOf, systemWords, type Words } from "./maths/words.js";
import type { Mechanism } from "./oracles/mechanism.js";
import { own } from "./own.js";
import type { Maker } from "./sender/making.js";
import type { Answers } from "./store/answers.js";
import type { Stream } from "./trust/asked.js";
import type { CampaignLog } from "./trust/campaign-log.js";
import type { CampaignSignature } from "./trust/delegation.js";
import type { Policy } from "./trust/policy.js";
import { digestOf, itemOf, otherItem, parseDictionary, type Dictionary } from "./values/dictionary.js";
import { canonical, faultOfText } from "./values/items.js";
import type { Coordinates } from "./values/strata.js";
import { loadAssigned, type Assigned } from "./values/unicode13.js";
import { sealBy, SECRET_BYTES } from "./wire/sealing.js";

const SALT_BYTES = 16;
const NAME_END = 32;
const FRESH_BYTES = 64;

/** The randomness of reports; `secret` returns the ephemeral secrets of boxes, each used once. */
export interface Randomness {
  readonly words: Words;
  readonly secret: () => Uint8Array;
}

/** The browser's cryptographic generator. */
const SYSTEM: Randomness = {
  words: systemWords,
  secret: () => freshBytes(SECRET_BYTES),
};

/** A campaign file with the files that came with it; no file is verified yet. */
export interface Offer {
  readonly campaign: Campaign;
  readonly policy: Policy;
  readonly signature: CampaignSignature | undefined;
  readonly log: CampaignLog | undefined;
  /** The bytes of the dictionary, one item a line. */
  readonly dictionary: Uint8Array | undefined;
  /** Where answers are kept, if the campaign's clients have a memory. */
  readonly answers: Answers;
  /** For tests only. */
  readonly random?: Randomness;
}

/**
 * Check an offered campaign with the policy, and return the maker of its reports.
 *
 * @throws Untrusted the policy refuses it. FormatError: the dictionary is missing or wrong, or the hash key is withheld.
 */
export async function openMaker(given: Offer): Promise<ReportMaker> {
  const offer = own(given);
  const { campaign, policy, signature, log } = offer;
  // The policy is checked first, so that no long file is read for a campaign that the policy refuses.
  const vouchedUntil = await policy.accept(campaign, signature, log);
  const dictionary = await dictionaryOf(offer);
  // The table is loaded before there is a value, because a page's requests must not depend on values.
  await loadAssigned();
  // An invalid public key is detected before any report is charged.
  const { evaluator } = campaign.keys;
  for (const key of campaign.streams.flatMap((stream) => keysOf(campaign, stream))) {
    if (key !== evaluator) await sealBy(SYSTEM.secret(), key.key, new Uint8Array());
  }
  const oblivious = evaluator && (await part(import("./discovery/oblivious.js"))).obliviousOf(evaluator.key, blake2b);
  return new ReportMaker(offer, dictionary, vouchedUntil, oblivious);
}

/**
 * Makes reports of one campaign file. A maker does not charge reports: the caller charges each report before it is
 * made.
 */
export class ReportMaker implements Maker {
  readonly campaign: Campaign;
  readonly #dictionary: Dictionary | undefined;
  readonly #answers: Answers;
  readonly #random: Randomness;
  readonly #vouchedUntil: number;
  readonly #discovery: DiscoveryFormat | undefined;
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #oblivious: Oblivious | undefined;

  constructor(
    { campaign, policy, answers, random = SYSTEM }: Offer,
    dictionary: Dictionary | undefined,
    vouchedUntil: number,
    oblivious: Oblivious | undefined,
  ) {
    this.campaign = campaign;
    this.#oblivious = oblivious;
    this.#dictionary = dictionary;
    this.#answers = answers;
    this.#random = random;
    this.#vouchedUntil = vouchedUntil;
    this.#discovery = discoveryFormatOf(campaign);
    this.#hosts = policy.hostsFor(campaign);
  }

  requireValid(now: number, streams: readonly Stream[]): void {
    for (const stream of streams) for (const key of keysOf(this.campaign, stream)) requireValidKey(key, this.campaign.id, now);
    if (now < this.#vouchedUntil) return;
    throw new Untrusted(
      `the keys that vouch for campaign ${this.campaign.id} were valid until ` +
        `${new Date(this.#vouchedUntil).toISOString()}: fetch the newest campaign and its signature`,
    );
  }

  async repeats(): Promise<boolean> {
    return this.campaign.memory && (await this.#answers.get(placeKey(this.campaign, 0))) !== undefined;
  }

  /**
   * Return a sealed frequency report; null gives one of "other", drawn without the memory.
   *
   * @param due when it is sent, in milliseconds since 1970: with noise of the mixes it names the window of this moment.
   */
  async report(value: string | null, by: Coordinates = {}, due: number = Date.now()): Promise<Uint8Array> {
    const { campaign } = this;
    const { analyzer, auxServer } = campaign.keys;
    const mechanism = requireMechanism(campaign);
    const item = await this.#itemOf(value, by, mechanism);
    const { words, secret } = this.#random;
    const remembers = value !== null && campaign.memory;
    const packed = remembers ? await this.#remembered(item, mechanism) : mechanism.report(item, words);
    const box = await sealBy(secret(), analyzer.key, concat(campaign.binding("reports"), packed));
    if (campaign.noise === undefined || auxServer === undefined) {
      return campaign.strata === undefined ? box : concat(campaign.strata.stratumOf(by), box);
    }
    const window = bytesOf(BigInt(startsOf(0, campaign).at(due) / 1000), WINDOW_BYTES);
    return concat(window, await sealBy(secret(), auxServer.key, concat(campaign.binding("reports"), window, box)));
  }

  /**
   * Return a sealed discovery report with a name, which is by default the value's name under the hash key.
   *
   * The report is a blank if there is neither name nor hash key, for null, and for a value that is too long.
   */
  async discoveryReport(value: string | null, given?: Name): Promise<Uint8Array> {
    const format = this.requireDiscovery();
    const told = await this.toldOf(value);
    const key = this.campaign.discoveryTerms?.hashKey;
    const name = given ?? (told !== undefined && key !== undefined ? keyedName(format, key, told) : undefined);
    return discoveryReport(format, name && told, name ?? blankName(this.octets(FRESH_BYTES)), this.#random.secret());
  }

  /** Begin a discovery report whose name the evaluator makes; this is possible only in an oblivious campaign. */
  pendingDiscovery(value: string | null): Promise<PendingDiscovery> {
    return (this.#oblivious as Oblivious)(this, value);
  }

  /** Return the text to discover in a value; undefined if there is no such text, or if the text is too long. */
  async toldOf(value: string | null): Promise<string | undefined> {
    const wanted = value === null ? undefined : await this.newOf(value);
    return wanted !== undefined && isTooLong(wanted, this.requireDiscovery()) ? undefined : wanted;
  }

  /** Draw random bytes, a multiple of 8. */
  octets(count: number): Uint8Array {
    return octetsOf(count, this.#random.words);
  }

  /** Return the format of discovery reports; UsageError if the campaign has none. */
  requireDiscovery(): DiscoveryFormat {
    if (this.#discovery !== undefined) return this.#discovery;
    throw new UsageError(`campaign ${this.campaign.id} carries no discovery reports`);
  }

  async #itemOf(value: string | null, by: Coordinates, { domain }: Mechanism): Promise<bigint> {
    if (value === null) return otherItem(domain);
    const assigned = await loadAssigned();
    const { itemOfNumber, strata } = this.campaign;
    const text = itemOfNumber?.(value, this.#random.words) ?? this.#textOf(value, assigned);
    const item = typeof text === "bigint" ? text : itemOf(text, this.#dictionary, domain, assigned);
    return strata?.cells === undefined ? item : BigInt(strata.cellOf(Number(item), by));
  }

  /** Return the normal spelling of a value, or the part of a URL that is told. */
  #textOf(value: string, assigned: Assigned): string {
    return this.campaign.itemOfUrl?.(value, assigned, this.#hosts) ?? canonical(value, assigned);
  }

  /** Return the text of a value; undefined if the text is in the dictionary, or cannot be an item. */
  async newOf(value: string): Promise<string | undefined> {
    const assigned = await loadAssigned();
    const text = this.#textOf(value, assigned);
    return this.#dictionary?.has(text) === true || faultOfText(text, assigned) !== undefined ? undefined : text;
  }

  /**
   * Return the remembered answer to an item. For a new item, draw and remember an answer; if the memory is full, return
   * the last answer that was stored.
   *
   * If a second or later answer cannot be stored, the memory counts as full, because an error only for new items would
   * reveal that an item is new.
   */
  async #remembered(item: bigint, mechanism: Mechanism): Promise<Uint8Array> {
    let last: Uint8Array | undefined;
    for (let place = 0; place < this.campaign.memoryValues; place += 1) {
      const key = placeKey(this.campaign, place);
      let found = await this.#answers.get(key);
      if (found === undefined) {
        // The salt never leaves the device, so no test vector states the salt.
        const salt = freshBytes(SALT_BYTES);
        const drawn = concat(salt, itemName(item, salt), mechanism.report(item, this.#random.words));
        try {
          found = await this.#answers.keep(key, drawn);
        } catch (error) {
          if (last === undefined || !(error instanceof HushcountError)) throw error;
          break;
        }
      }
      last = found;
      if (hex(found.subarray(SALT_BYTES, NAME_END)) === hex(itemName(item, found.subarray(0, SALT_BYTES)))) break;
    }
    const answer = last?.subarray(NAME_END);
    if (answer?.length === mechanism.reportBytes) return answer;
    throw new UsageError("an answer in the memory must have the length of the campaign's reports");
  }
}

async function dictionaryOf({ campaign, dictionary: bytes }: Offer): Promise<Dictionary | undefined> {
  const listed = campaign.dictionary;
  if (listed === undefined) return undefined;
  if (bytes === undefined) throw new FormatError(`the dictionary of campaign ${campaign.id} is missing: give its file`);
  const dictionary = await parseDictionary(bytes, listed.items);
  if (dictionary.size === listed.items && digestOf(dictionary) === listed.digest) return dictionary;
  throw new FormatError("the dictionary is not the campaign's: give the one that came with the file");
}

function discoveryFormatOf({ id, discoveryTerms, keys, binding }: Campaign): DiscoveryFormat | undefined {
  if (discoveryTerms === undefined || keys.auxServer === undefined) return undefined;
  const { hashKey, isOblivious, maxValueBytes } = discoveryTerms;
  if (hashKey === undefined && !isOblivious) {
    throw new FormatError(`this file of campaign ${id} is redacted and holds no hash key: give the file that is not redacted`);
  }
  const { analyzer, auxServer } = keys;
  return { binding: binding("discovery"), maxValueBytes, analyzer: analyzer.key, auxServer: auxServer.key };
}

function requireMechanism({ id, mechanism }: Campaign): Mechanism {
  if (mechanism !== undefined) return mechanism;
  throw new UsageError(`campaign ${id} carries no frequency reports, only discovery`);
}

/** Return the public keys that reports of a stream need. */
function keysOf({ keys: { analyzer, auxServer, evaluator }, noise }: Campaign, stream: Stream): readonly PublicKey[] {
  const discovers = stream === "discovery";
  const needed = [analyzer, discovers || noise ? auxServer : undefined, discovers ? evaluator : undefined];
  return needed.filter((key) => key !== undefined);
}

function requireValidKey({ notBefore, notAfter }: PublicKey, id: string, now: number): void {
  if (notBefore <= now && now < notAfter) return;
  throw new NoValidKey(`a key of campaign ${id} is not valid now: fetch the newest campaign, or set the device's clock`);
}

/** Return the store key of a place for an answer, unique to this campaign file. */
function placeKey({ fingerprint }: Campaign, place: number): Uint8Array {
  return blake2b(concat(unhex(fingerprint), bytesOf(BigInt(place), 8)), { length: 32, person: "reports" });
}

/** Return the salted name of an answer's item, so that the same item has different names in different memories. */
function itemName(item: bigint, salt: Uint8Array): Uint8Array {
  return blake2b(bytesOf(item, 8), { length: NAME_END - SALT_BYTES, salt });
}
