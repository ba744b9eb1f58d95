/**
 * Asks an issuer for the passes of one client, once a day (docs/adr/0053). Only campaigns with passes load this module.
 *
 * The client asks for all its passes of the next day at a random second of each day, whether it reports or not. Without
 * passes of today it asks at once. The bytes of a request follow from the client's secret, the slots and the keys, so a
 * repeated request is equal, and the issuer answers it again.
 */

import type { blake2b, concat, hex, unhex, utf8 } from "../bytes.js";
import type { DeliveryError } from "../errors.js";
import type { Arrivals } from "../sender/arrivals.js";
import type { EventLog } from "../sender/events.js";
import type { heldUntil, hold, release } from "../sender/hold.js";
import type { addressOf, Fetch, send } from "../sender/http.js";
import type { base64Url, collectorName, keyOf, nonceOf, Role, slotOf, Tokens } from "../sender/token.js";
import type { verdict, Verdict } from "../sender/verdict.js";
import type { Store, Value } from "../store/store.js";
import type { Asked, PassTerms } from "../trust/asked.js";
import { BLIND_BYTES, blinded, encoded, KEY_BYTES, numberOf, SALT_BYTES, sha, unblinded } from "./blind.js";

const DAY = 86_400;
const OCTETS = "application/octet-stream";
const TOKEN_TYPE = Uint8Array.of(0, 2);
/** DER of a public key for RSASSA-PSS, before and after its modulus (RFC 9578, section 6.5). */
const BEFORE_MODULUS =
  "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b060960864801" +
  "6503040202a2030201300382010f003082010a0282010100";
const AFTER_MODULUS = "0203010001";
/** Most parties of a campaign times most periods of a day. */
const MOST_KEYS = 17 * 24;

/** The issuer, and what shows that this installation may ask. */
export interface Issuer {
  /** The issuer's address, such as https://issuer.example.com. */
  readonly address: string;
  /** Return the header Authorization for the issuer's rule, such as a token of the account. */
  readonly authorization: () => string | Promise<string>;
}

/** Functions of the page, which are passed in so that this module need not import them. */
export interface Tools {
  readonly blake2b: typeof blake2b;
  readonly concat: typeof concat;
  readonly hex: typeof hex;
  readonly unhex: typeof unhex;
  readonly utf8: typeof utf8;
  readonly DeliveryError: typeof DeliveryError;
  readonly send: typeof send;
  readonly verdict: typeof verdict;
  readonly heldUntil: typeof heldUntil;
  readonly hold: typeof hold;
  readonly release: typeof release;
  readonly base64Url: typeof base64Url;
  readonly nonceOf: typeof nonceOf;
  readonly slotOf: typeof slotOf;
  readonly keyOf: typeof keyOf;
  readonly addressOf: typeof addressOf;
  readonly collectorName: typeof collectorName;
}

/** What one client asks with. */
export interface Circumstances extends Tokens {
  readonly store: Store;
  readonly fetcher: Fetch;
  readonly log: EventLog;
  readonly issuer: Issuer | undefined;
  /** The collector's name, if the app gives it. */
  readonly siteName: string | undefined;
  readonly arrivals: Pick<Arrivals, "present">;
}

/** Throw unless the section on passes of a campaign file has its form, or is missing; a client needs at most 24 a day. */
export function requirePasses({ passes, evaluatorKey }: Pick<Asked, "passes" | "evaluatorKey">, Wrong: new (message: string) => Error): void {
  if (passes === undefined) return;
  const { seconds, first, days, ...more } = { ...(passes as Partial<PassTerms> | null) };
  const least = evaluatorKey === undefined ? 3600 : 7200;
  const isPeriod = Number.isInteger(seconds) && seconds !== undefined && seconds >= least && DAY % seconds === 0;
  const isDay = typeof first === "string" && /^\d{4}-\d\d-\d\d$/.test(first) && !first.startsWith("0000");
  const isListed = Array.isArray(days) && days.length > 0 && days.length <= 100;
  const isHash = (day: unknown): boolean => typeof day === "string" && /^[0-9a-f]{64}$/.test(day);
  if (isPeriod && isDay && isReal(first) && isListed && days.every(isHash) && Object.keys(more).length === 0) return;
  throw new Wrong(`passes must have seconds that divide a day, at least ${String(least)}, a first day, and 1 to 100 hashes of days`);
}

/** Throw unless the app named the issuer of a campaign with passes. */
export function requireIssuer({ id }: Asked, issuer: Issuer | undefined, Wrong: new (message: string) => Error): void {
  if (issuer === undefined) throw new Wrong(`campaign ${id} asks for passes of an issuer: give issuer`);
}

/** Return whether a day is in its month: `Date` reads 30 February as a day in March. */
function isReal(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

/** A slot, and its pass whose signature is asked for. */
export interface Pending {
  readonly name: string;
  readonly modulus: bigint;
  readonly message: Uint8Array;
  readonly encoded: bigint;
  readonly blinding: Uint8Array;
  readonly request: Uint8Array;
}

type Party = readonly [role: Role, name: string];

/** Return tokens that are shown with passes; `asks`: first ask the issuer for passes, if that is due. */
export async function withPasses(tools: Tools, given: Circumstances, campaign: Asked, asks: boolean): Promise<Tokens> {
  const { store, secret, siteName } = given;
  const name = tools.collectorName(campaign, siteName);
  if (asks) await ask(tools, given, campaign, name);
  const kept = await keptPasses(tools, store, campaign.id);
  const held = (await tools.heldUntil(store, holderOf(campaign), Date.now())) ?? 0;
  const seconds = campaign.passes?.seconds ?? DAY;
  const passOf = (role: Role, party: string, window: number): string | undefined =>
    kept.get(passName(role, party, Math.floor(window / 1000 / seconds) * seconds));
  return {
    secret,
    shown: (role, party, window) => {
      const pass = passOf(role, party, window);
      return pass === undefined ? undefined : { Authorization: pass };
    },
    has: (window) => passOf("collector", name, window) !== undefined,
    asks: Math.max(held, 1000 * (dues(tools, given, campaign, name, kept).find(({ isKept }) => !isKept)?.from ?? Infinity)),
  };
}

/** Ask for passes if that is due; after a failure the issuer is not asked for a while. */
async function ask(tools: Tools, given: Circumstances, campaign: Asked, name: string): Promise<void> {
  const { store, log, issuer } = given;
  const holder = holderOf(campaign);
  if (issuer === undefined || (await tools.heldUntil(store, holder, Date.now())) !== undefined) return;
  const kept = await keptPasses(tools, store, campaign.id);
  for (const { day, from, isKept } of dues(tools, given, campaign, name, kept).slice(0, 2)) {
    if (isKept || from > Date.now() / 1000) continue;
    const said = await asked(tools, given, issuer, campaign, name, day).catch((error: unknown): Verdict => {
      const told = error instanceof Error ? error.message : "";
      return { fate: "again", reason: error instanceof tools.DeliveryError ? "no_answer" : told, wait: 0 };
    });
    if (said.fate !== "sent") {
      await tools.hold(store, holder, Date.now(), said);
      log.add("no_pass", 0, said.reason);
      return;
    }
    await tools.release(store, holder);
  }
}

interface Due {
  readonly day: number;
  /** From when the passes of this day are asked for, in seconds since 1970. */
  readonly from: number;
  readonly isKept: boolean;
}

/** Return when the passes of today, of tomorrow and of the day after are asked for, and whether they are kept. */
function dues(
  tools: Tools,
  { arrivals, secret }: Circumstances,
  campaign: Asked,
  name: string,
  kept: ReadonlyMap<string, string>,
): readonly Due[] {
  const today = Math.floor(arrivals.present() / 1000 / DAY) * DAY;
  return [today, today + DAY, today + 2 * DAY].map((day) => {
    const names = ownParties(campaign, name).flatMap(([role, named]) =>
      periodsOf(campaign, day).map((begins) => passName(role, named, begins)),
    );
    const before = day - DAY;
    const from = day === today ? today : before + askingSecond(tools, secret, before);
    return { day, from, isKept: names.every((each) => kept.has(each)) };
  });
}

/** Return the name of the pause after failures of the issuer. */
function holderOf({ id }: Asked): string {
  return `${id}/issuer`;
}

/** Return the second of a day at which a client asks for the passes of the next one. */
export function askingSecond({ blake2b }: Pick<Tools, "blake2b">, secret: Uint8Array, day: number): number {
  const begin = new DataView(new ArrayBuffer(8));
  begin.setBigInt64(0, BigInt(day));
  const drawn = blake2b(new Uint8Array(begin.buffer), { length: 8, person: "asking", key: secret });
  return Number(numberOf(drawn) % BigInt(DAY));
}

/** Return the challenge of a slot: SHA-256 of the TokenChallenge of RFC 9577, which everybody computes and nobody sends. */
export async function challengeOf({ blake2b, concat, utf8 }: Tools, slot: Uint8Array, campaign: string): Promise<Uint8Array> {
  const context = blake2b(slot, { length: 32, person: "pass context" });
  const named = utf8(campaign);
  return sha("SHA-256", concat(TOKEN_TYPE, Uint8Array.of(0, named.length), named, Uint8Array.of(32), context, new Uint8Array(2)));
}

/** Return the pass of a slot to ask for. Its blinding depends on the key too: one used with two keys would link. */
export async function pending(
  tools: Tools,
  secret: Uint8Array,
  [role, party]: Party,
  campaign: string,
  begins: number,
  octets: Uint8Array,
): Promise<Pending> {
  const { blake2b, concat, unhex } = tools;
  const slot = tools.slotOf(role, campaign, party, begins);
  const keyId = await sha("SHA-256", unhex(BEFORE_MODULUS), octets, unhex(AFTER_MODULUS));
  const drawn = concat(
    ...[0, 1, 2, 3, 4].map((block) =>
      blake2b(concat(slot, keyId, Uint8Array.of(block)), { length: 64, person: "pass blinding", key: secret }),
    ),
  );
  const blinding = drawn.slice(0, BLIND_BYTES);
  const message = concat(TOKEN_TYPE, tools.nonceOf(secret, slot), await challengeOf(tools, slot, campaign), keyId);
  const modulus = numberOf(octets);
  const padded = await encoded(message, drawn.slice(BLIND_BYTES, BLIND_BYTES + SALT_BYTES));
  const request = concat(TOKEN_TYPE, keyId.slice(-1), blinded(modulus, padded, blinding));
  return { name: passName(role, party, begins), modulus, message, encoded: padded, blinding, request };
}

/** Return the header that shows the pass of an answer. Throws if the answer is no signature by the slot's key. */
export function finished({ base64Url, concat }: Tools, one: Pending, answer: Uint8Array): string {
  const signature = unblinded(one.modulus, one.encoded, one.blinding, answer);
  if (signature === undefined) throw new Error("the answer of the issuer is no signature by the key of the campaign file");
  return `PrivateToken token="${base64Url(concat(one.message, signature))}"`;
}

/** Ask for all passes of a day, and keep them if all are good; return what happened. */
async function asked(
  tools: Tools,
  { fetcher, secret, store }: Circumstances,
  issuer: Issuer,
  campaign: Asked,
  name: string,
  day: number,
): Promise<Verdict> {
  const base = `${tools.addressOf(issuer.address, "issuer")}/v1/campaigns/${campaign.id}`;
  const text = new Date(day * 1000).toISOString().slice(0, 10).replaceAll("-", "");
  const url = `${base}/passes?day=${text}`;
  const served = await tools.send(fetcher, { url, headers: {}, mostBytes: MOST_KEYS * KEY_BYTES });
  const keys = bodyOf(tools, served);
  if (!(keys instanceof Uint8Array)) return keys;
  const periods = periodsOf(campaign, day);
  const moduli = checkedDay(tools, campaign, day, keys);
  const parties = partiesOf(campaign);
  const mine = ownParties(campaign, name).flatMap((party) => {
    const first = parties.findIndex(([role, named]) => role === party[0] && named === party[1]) * periods.length;
    return periods.map((begins, place) => pending(tools, secret, party, campaign.id, begins, moduli[first + place] ?? keys));
  });
  const passes = await Promise.all(mine);
  const headers = { "Content-Type": OCTETS, Authorization: await shown(issuer) };
  const body = tools.concat(...passes.map(({ request }) => request));
  const mostBytes = passes.length * KEY_BYTES;
  const answer = bodyOf(tools, await tools.send(fetcher, { url: `${url}&collector=${name}`, headers, body, mostBytes }));
  if (!(answer instanceof Uint8Array)) return answer;
  if (answer.length !== mostBytes) return { fate: "again", reason: "wrong_length", wait: 0 };
  const made = passes.map((one, place): readonly [string, string] => [
    one.name,
    finished(tools, one, answer.slice(place * KEY_BYTES, (place + 1) * KEY_BYTES)),
  ]);
  await keep(tools, store, secret, campaign.id, new Map(made), day);
  return { fate: "sent", reason: "", wait: 0 };
}

/** Return the moduli of a day. Throws if they are not those of the signed campaign file. */
function checkedDay({ blake2b, hex }: Tools, campaign: Asked, day: number, keys: Uint8Array): readonly Uint8Array[] {
  const { first = "", days = [] } = campaign.passes ?? {};
  const digest = days[Math.round((day - Date.parse(first) / 1000) / DAY)];
  const number = partiesOf(campaign).length * periodsOf(campaign, day).length;
  if (digest === undefined) throw new Error(`campaign ${campaign.id} has no passes for this day`);
  const moduli = Array.from({ length: number }, (_, place) => keys.slice(place * KEY_BYTES, (place + 1) * KEY_BYTES));
  const isValid = ([most = 0, ...rest]: Uint8Array): boolean => most > 127 && (rest.at(-1) ?? 0) % 2 === 1;
  const isNamed = hex(blake2b(keys, { length: 32, person: "pass keys" })) === digest;
  if (keys.length === number * KEY_BYTES && isNamed && moduli.every(isValid)) return moduli;
  throw new Error(`the keys for passes are not those of campaign ${campaign.id}: tell the operator`);
}

/** Return the bytes of an answer 200, or why there are none. */
function bodyOf({ verdict }: Tools, answer: Awaited<ReturnType<typeof send>>): Uint8Array | Verdict {
  if (answer.status === 200 && answer.media === OCTETS) return answer.body;
  const { reason, wait } = answer.status === 200 ? { reason: "", wait: 0 } : verdict(answer, 1);
  return { fate: "again", reason: reason === "" || reason === "no_collector" ? "no_issuer" : reason, wait };
}

/** Return what the app gives for the issuer's rule. Throws without its text if that is no header. */
async function shown({ authorization }: Issuer): Promise<string> {
  const given: unknown = await Promise.resolve().then(authorization).catch(() => undefined);
  if (typeof given === "string" && /^[\x20-\x7e]+$/.test(given)) return given;
  throw new Error("the authorization for the issuer is no printable ASCII text");
}

function partiesOf({ collectors, evaluatorKey }: Asked): readonly Party[] {
  const named = collectors.map((name): Party => ["collector", name]);
  return evaluatorKey === undefined ? named : [...named, ["evaluator", "evaluator"]];
}

function ownParties(campaign: Asked, own: string): readonly Party[] {
  return partiesOf(campaign).filter(([role, name]) => role === "evaluator" || name === own);
}

/** Return when the periods of a day begin, in seconds since 1970. */
function periodsOf({ passes }: Asked, day: number): readonly number[] {
  const seconds = passes?.seconds ?? DAY;
  return Array.from({ length: DAY / seconds }, (_, number) => day + number * seconds);
}

/** Return the headers of the kept passes by name. */
function keptPasses(tools: Tools, store: Store, campaign: string): Promise<ReadonlyMap<string, string>> {
  return store.change([passesKey(tools, campaign)], ([found]) => ({ result: entriesOf(found?.[0]?.[1]) }));
}

/** Keep passes of a day unless their secret was deleted by an opt-out, and delete those of days before yesterday. */
function keep(
  tools: Tools,
  store: Store,
  secret: Uint8Array,
  campaign: string,
  made: ReadonlyMap<string, string>,
  day: number,
): Promise<void> {
  const key = passesKey(tools, campaign);
  return store.change([key, tools.keyOf(campaign)], ([found, owner]) => {
    if (owner?.[0]?.[1] !== tools.hex(secret)) return { result: undefined };
    const all = [...entriesOf(found?.[0]?.[1]), ...made];
    const recent = all.filter(([name]) => Number(name.slice(name.lastIndexOf(" ") + 1)) >= day - 2 * DAY);
    return { put: [[key, recent]], result: undefined };
  });
}

function entriesOf(value: Value | undefined): ReadonlyMap<string, string> {
  return new Map((value ?? []) as readonly (readonly [string, string])[]);
}

/** Return the name under which the pass of a slot is kept. */
function passName(role: Role, name: string, begins: number): string {
  return `${role} ${name} ${String(begins)}`;
}

function passesKey({ keyOf }: Tools, campaign: string): string {
  return `${keyOf(campaign)}/passes`;
}
