/** What makes the reports of one campaign file that was checked: a value in, a sealed report of one length out. */

import { blake2b, bytesOf, concat, hex, unhex } from "./bytes.js";
import type { Campaign } from "./campaign/campaign.js";
import type { PublicKey } from "./campaign/sections.js";
import type { Oblivious, PendingDiscovery } from "./discovery/oblivious.js";
import { blankName, discoveryReport, isTooLong, keyedName, type DiscoveryFormat, type Name } from "./discovery/report.js";
import { FormatError, HushcountError, Untrusted, UsageError } from "./errors.js";
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
import { loadAssigned } from "./values/unicode13.js";
import { sealBy, SECRET_BYTES } from "./wire/sealing.js";

const SALT_BYTES = 16;
const NAME_END = 32;
const FRESH_BYTES = 64;

/** Where reports take their randomness from; the secrets are those of the boxes, each is used once. */
export interface Randomness {
  readonly words: Words;
  readonly secret: () => Uint8Array;
}

/** The browser's cryptographic generator. */
const SYSTEM: Randomness = {
  words: systemWords,
  secret: () => freshBytes(SECRET_BYTES),
};

/** A campaign file with what came along with it; nothing of it is believed yet. */
export interface Offer {
  readonly campaign: Campaign;
  readonly policy: Policy;
  readonly signature: CampaignSignature | undefined;
  readonly log: CampaignLog | undefined;
  /** The bytes of the dictionary, one item a line. */
  readonly dictionary: Uint8Array | undefined;
  /** Where answers are kept, if the campaign is of clients that remember. */
  readonly answers: Answers;
  /** Given for tests alone. */
  readonly random?: Randomness;
}

/**
 * Check an offered campaign by the policy, and return what makes its reports.
 *
 * @throws Untrusted the policy refuses it. FormatError: the dictionary is missing or another one, or a key withheld.
 */
export async function openMaker(given: Offer): Promise<ReportMaker> {
  const offer = own(given);
  const { campaign, policy, signature, log } = offer;
  // Nothing long is read for a campaign that the policy refuses.
  const vouchedUntil = await policy.accept(campaign, signature, log);
  const dictionary = await dictionaryOf(offer);
  // Before there is a value: what a page loads, and when, must not depend on one.
  await loadAssigned();
  // A key that nothing can be sealed to, or that proves nothing, is found out before a report is charged.
  const { evaluator } = campaign.keys;
  for (const key of campaign.streams.flatMap((stream) => keysOf(campaign, stream))) {
    if (key !== evaluator) await sealBy(SYSTEM.secret(), key.key, new Uint8Array());
  }
  const oblivious = evaluator && (await part(import("./discovery/oblivious.js"))).obliviousOf(evaluator.key, blake2b);
  return new ReportMaker(offer, dictionary, vouchedUntil, oblivious);
}

/** Makes reports of one campaign file. It charges nothing: whoever calls it does so before. */
export class ReportMaker implements Maker {
  readonly campaign: Campaign;
  readonly #dictionary: Dictionary | undefined;
  readonly #answers: Answers;
  readonly #random: Randomness;
  readonly #vouchedUntil: number;
  readonly #discovery: DiscoveryFormat | undefined;
  readonly #oblivious: Oblivious | undefined;

  constructor(
    { campaign, answers, random = SYSTEM }: Offer,
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

  /** Return a sealed frequency report; null is "other", drawn afresh, and no memory is touched. */
  async report(value: string | null): Promise<Uint8Array> {
    const { campaign } = this;
    const mechanism = requireMechanism(campaign);
    const item = await this.#itemOf(value, mechanism);
    const { words, secret } = this.#random;
    const remembers = value !== null && campaign.memory;
    const packed = remembers ? await this.#remembered(item, mechanism) : mechanism.report(item, words);
    return sealBy(secret(), campaign.keys.analyzer.key, concat(campaign.binding("reports"), packed));
  }

  /**
   * Return a sealed discovery report under a name, by default the one that the hash key gives the value.
   *
   * Without either it is a blank one; null, or a value that is too long, has nothing to discover.
   */
  async discoveryReport(value: string | null, given?: Name): Promise<Uint8Array> {
    const format = this.requireDiscovery();
    const told = await this.toldOf(value);
    const key = this.campaign.discoveryTerms?.hashKey;
    const name = given ?? (told !== undefined && key !== undefined ? keyedName(format, key, told) : undefined);
    return discoveryReport(format, name && told, name ?? blankName(this.octets(FRESH_BYTES)), this.#random.secret());
  }

  /** Begin a discovery report whose name the evaluator is asked for, in an oblivious campaign alone. */
  pendingDiscovery(value: string | null): Promise<PendingDiscovery> {
    return (this.#oblivious as Oblivious)(this, value);
  }

  /** Return what there is to discover in a value: nothing if it is too long. */
  async toldOf(value: string | null): Promise<string | undefined> {
    const wanted = value === null ? undefined : await this.newOf(value);
    return wanted !== undefined && isTooLong(wanted, this.requireDiscovery()) ? undefined : wanted;
  }

  /** Draw random bytes, a multiple of 8. */
  octets(count: number): Uint8Array {
    return octetsOf(count, this.#random.words);
  }

  /** Throw UsageError if there is nothing to make discovery reports with; else return it. */
  requireDiscovery(): DiscoveryFormat {
    if (this.#discovery !== undefined) return this.#discovery;
    throw new UsageError(`campaign ${this.campaign.id} carries no discovery reports`);
  }

  async #itemOf(value: string | null, { domain }: Mechanism): Promise<bigint> {
    if (value === null) return otherItem(domain);
    const assigned = await loadAssigned();
    return itemOf(canonical(value, assigned), this.#dictionary, domain, assigned);
  }

  /** Return the one spelling of a value; undefined if it is listed, or may be no item. */
  async newOf(value: string): Promise<string | undefined> {
    const assigned = await loadAssigned();
    const text = canonical(value, assigned);
    return this.#dictionary?.has(text) === true || faultOfText(text, assigned) !== undefined ? undefined : text;
  }

  /**
   * Return the one answer to an item, drawn if a place is free for it; else that of the last place.
   *
   * A place that cannot be kept is no place: to throw only for an item without an answer would tell.
   */
  async #remembered(item: bigint, mechanism: Mechanism): Promise<Uint8Array> {
    let last: Uint8Array | undefined;
    for (let place = 0; place < this.campaign.memoryValues; place += 1) {
      const key = placeKey(this.campaign, place);
      let found = await this.#answers.get(key);
      if (found === undefined) {
        // It never leaves the device: no vector has it.
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
    throw new UsageError(`the memory holds an answer of another length than the campaign's reports`);
  }
}

async function dictionaryOf({ campaign, dictionary: bytes }: Offer): Promise<Dictionary | undefined> {
  const listed = campaign.dictionary;
  if (listed === undefined) return undefined;
  if (bytes === undefined) throw new FormatError(`the dictionary of campaign ${campaign.id} is missing: give its file`);
  const dictionary = await parseDictionary(bytes, listed.items);
  if (dictionary.size === listed.items && digestOf(dictionary) === listed.digest) return dictionary;
  throw new FormatError("the dictionary is not the campaign's: give the one that came with it");
}

function discoveryFormatOf({ id, discoveryTerms, keys, binding }: Campaign): DiscoveryFormat | undefined {
  if (discoveryTerms === undefined || keys.auxServer === undefined) return undefined;
  const { hashKey, isOblivious, maxValueBytes } = discoveryTerms;
  if (hashKey === undefined && !isOblivious) {
    throw new FormatError(`this file of campaign ${id} holds no hash key: it is for the servers, clients need the whole one`);
  }
  const { analyzer, auxServer } = keys;
  return { binding: binding("discovery"), maxValueBytes, analyzer: analyzer.key, auxServer: auxServer.key };
}

function requireMechanism({ id, mechanism }: Campaign): Mechanism {
  if (mechanism !== undefined) return mechanism;
  throw new UsageError(`campaign ${id} carries no frequency reports, only discovery`);
}

/** Return the keys that reports of a stream need. */
function keysOf({ keys: { analyzer, auxServer, evaluator } }: Campaign, stream: Stream): readonly PublicKey[] {
  return stream === "discovery" ? [analyzer, auxServer, evaluator].filter((key) => key !== undefined) : [analyzer];
}

function requireValidKey({ notBefore, notAfter }: PublicKey, id: string, now: number): void {
  if (notBefore <= now && now < notAfter) return;
  throw new UsageError(`a key of campaign ${id} is not valid now: fetch the newest campaign, or set the device's clock`);
}

/** Return the key of a place for an answer, which only this campaign file has. */
function placeKey({ fingerprint }: Campaign, place: number): Uint8Array {
  return blake2b(concat(unhex(fingerprint), bytesOf(BigInt(place), 8)), { length: 32, person: "reports" });
}

/** Return the salted name of the item of an answer: no two memories name an item alike. */
function itemName(item: bigint, salt: Uint8Array): Uint8Array {
  return blake2b(bytesOf(item, 8), { length: NAME_END - SALT_BYTES, salt });
}
