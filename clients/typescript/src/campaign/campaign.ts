/** The campaign: the public parameters of one collection, read from a file that states even default values. */

import { blake2b, hex, unhex, utf8 } from "../bytes.js";
import { FormatError, Untrusted } from "../errors.js";
import { booleanOf, fieldsOf, HEX_32, IDENTIFIER, listOf, numberOf, textOf, type Fields } from "../fields.js";
import { part } from "../loading.js";
import { wordOf } from "../maths/words.js";
import { familyOf } from "../oracles/catalogue.js";
import type { MechanismTerms } from "../oracles/given.js";
import { loadMechanism } from "../oracles/load.js";
import { truthful, type Mechanism } from "../oracles/mechanism.js";
import { own } from "../own.js";
import { loadPasses } from "../passes/load.js";
import type { Asked, AxesTerms, NoiseTerms, PassTerms, Stream, UrlTerms, WindowTerms } from "../trust/asked.js";
import { headOf } from "../trust/campaign-log.js";
import { sampleOf } from "../trust/sample.js";
import { faultOfText, mayBeListed } from "../values/items.js";
import type { ItemOfNumber, Tools as NumberTools } from "../values/numbers.js";
import type { Strata, Tools as StrataTools } from "../values/strata.js";
import { nfc } from "../values/unicode13.js";
import type { ItemOfUrl, Tools as UrlTools } from "../values/urls.js";
import { SEAL_BYTES } from "../wire/sealing.js";
import { fingerprintOf, termsOf } from "./fingerprint.js";
import {
  discoveryOf,
  keysOf,
  listedOf,
  mechanismTermsOf,
  shuffleOf,
  type DiscoveryTerms,
  type Listed,
  type PublicKeys,
} from "./sections.js";

export const CAMPAIGN_BYTES = 2 ** 20;
export const NAME = "the campaign file";
/** What the modules of numbers, of addresses and of axes use. */
export const TOOLS: NumberTools & UrlTools & StrataTools = { blake2b, hex, utf8, wordOf, nfc, faultOfText, FormatError, own, familyOf, mayBeListed };
const BINDING_BYTES = 16;
/** A report with noise names its window by so many bytes, openly and in its layer. */
export const WINDOW_BYTES = 8;
const HASH_BYTES = 32;
const LENGTH_BYTES = 2;
const MOST_COLLECTORS = 16;
const OPTIONAL = ["previous", "mechanism", "dictionary", "discovery", "sample", "passes", "number", "windows", "url", "axes", "noise"];
const NEEDED = ["format", "id", "epoch", "memory", "memory_values", "shuffle", "collectors", "keys", "unicode"];

/** A campaign file that was read and checked, with the mechanism of its frequency reports. */
export interface Campaign extends Asked {
  /** Undefined if there are no frequency reports. */
  readonly mechanism: Mechanism | undefined;
  /** Undefined in the open domain. */
  readonly dictionary: Listed | undefined;
  readonly discoveryTerms: DiscoveryTerms | undefined;
  readonly keys: PublicKeys;
  /** Undefined if values are texts. */
  readonly itemOfNumber: ItemOfNumber | undefined;
  /** Undefined if values are no addresses. */
  readonly itemOfUrl: ItemOfUrl | undefined;
  /** Undefined if nothing is broken down. */
  readonly strata: Strata | undefined;
  /** Return the first 16 bytes of every plain report of a stream. */
  binding(stream: Stream): Uint8Array;
}

/**
 * A checked campaign file, without its mechanism. The mechanism's module may have to be loaded before the mechanism's
 * parameters can be checked.
 */
export interface Form extends Omit<Campaign, "mechanism" | "sealedBytes" | "itemOfNumber" | "itemOfUrl" | "strata" | "publicStrata"> {
  readonly mechanismTerms: MechanismTerms | undefined;
  /** The section on numbers, whose check is loaded with the rest of numbers. */
  readonly number: unknown;
}

/**
 * Check the data of a campaign file, and load its mechanism.
 *
 * @param window length of the operator's windows, or of the shortest that a campaign may list, in milliseconds.
 * @param designs files of the app, for mechanism `wss`.
 * @throws FormatError the file is no campaign file, or has another format; the error names the field. Untrusted: it lists
 * shorter windows.
 */
export async function openCampaign(file: unknown, window = 0, designs: readonly unknown[] = []): Promise<Campaign> {
  const form = formOf(file);
  const { mechanismTerms: terms } = form;
  if (form.passes !== undefined) (await loadPasses()).requirePasses(form, FormatError);
  if (form.windows !== undefined) (await part(import("./windows.js"))).requireWindows(form, window, FormatError, Untrusted);
  const ofNumber = form.number === undefined ? undefined : (await part(import("../values/numbers.js"))).itemOfNumber(TOOLS, form);
  const ofUrl = form.url === undefined ? undefined : (await part(import("../values/urls.js"))).itemOfUrl(TOOLS, form);
  const strata = form.axes === undefined ? undefined : (await part(import("../values/strata.js"))).strataOf(TOOLS, form);
  if (form.noise !== undefined) {
    (await part(import("./noise.js"))).requireNoise(form, domainOf(form, strata), strata?.publicStrata ?? 1, window, FormatError, Untrusted);
  }
  const build = terms === undefined ? unbuilt : await loadMechanism(terms.name, designs);
  return campaignFrom(form, build, ofNumber, ofUrl, strata);
}

/** Return the number of items that a mechanism counts, "other" included; undefined in the open domain. */
export function domainOf({ dictionary }: Pick<Form, "dictionary">, strata: Strata | undefined): number | undefined {
  return dictionary && (strata?.cells ?? dictionary.items + 1);
}

/**
 * Check the data of a campaign file, except for its sections on passes, windows, numbers, addresses, axes and noise, whose checks are
 * loaded with the rest of these. Throws FormatError, which names the field.
 */
export function formOf(file: unknown): Form {
  const { format = 2 } = own(file as { readonly format?: unknown } | null);
  if (format !== 2) {
    throw new FormatError(`${NAME}: format must be 2: update this client, or ask the operator for a new campaign`);
  }
  const fields = fieldsOf(file, NAME, NEEDED, OPTIONAL);
  const discovery = "discovery" in fields ? discoveryOf(fields.discovery, NAME) : undefined;
  const dictionary = "dictionary" in fields ? listedOf(fields.dictionary, NAME) : undefined;
  const terms = "mechanism" in fields ? mechanismTermsOf(fields.mechanism, NAME) : undefined;
  const sample = "sample" in fields ? sampleOf(fields.sample, NAME) : undefined;
  const collectors = collectorsOf(fields);
  const memory = booleanOf(fields, "memory", NAME);
  const memoryValues = numberOf(fields, "memory_values", [1, 1000], NAME, true);
  const shuffle = shuffleOf(fields.shuffle, NAME);
  const id = textOf(fields, "id", IDENTIFIER, NAME);
  const epoch = numberOf(fields, "epoch", [1, 2 ** 31 - 1], NAME, true);
  const previous = "previous" in fields ? textOf(fields, "previous", HEX_32, NAME) : undefined;
  const keys = keysOf(fields.keys, discovery, NAME);
  textOf(fields, "unicode", /^13\.0$/, NAME);
  const counts = terms !== undefined || fields.noise !== undefined;
  if (!counts && discovery === undefined) throw new FormatError(`${NAME}: mechanism, noise or discovery is missing`);
  if (terms === undefined && memory) throw new FormatError(`${NAME}: memory is of no use without a mechanism`);
  if (memoryValues > 1 && !memory) throw new FormatError(`${NAME}: memory_values must be 1 if memory is false`);
  if (terms !== undefined) inMechanism(() => familyOf(terms.name));
  if (terms?.name === "line" && fields.number === undefined) throw new FormatError(`${NAME}: mechanism line needs number`);
  // Replacing a client costs twice the (epsilon, delta) of adding or removing a client.
  const sides = discovery?.relation === "add-remove" ? 2 : 1;
  const fingerprint = fingerprintOf(fields);
  return {
    id,
    epoch,
    fingerprint,
    terms: termsOf(fields),
    previous,
    evaluatorKey: keys.evaluator && hex(keys.evaluator.key),
    head: headOf(previous, fingerprint),
    streams: [...(counts ? (["reports"] as const) : []), ...(discovery ? (["discovery"] as const) : [])],
    epsilon: terms?.epsilon ?? 0,
    noise: "noise" in fields ? own(fields.noise as NoiseTerms) : undefined,
    memory,
    memoryValues,
    discovery: { epsilon: sides * (discovery?.epsilon ?? 0), delta: sides * (discovery?.delta ?? 0) },
    ...shuffle,
    collectors,
    passes: fields.passes as PassTerms | undefined,
    windows: fields.windows as WindowTerms | undefined,
    sample,
    mechanismTerms: terms,
    number: fields.number,
    axes: "axes" in fields ? own(fields.axes as AxesTerms) : undefined,
    takesNumbers: fields.number !== undefined,
    url: "url" in fields ? own(fields.url as UrlTerms) : undefined,
    dictionary,
    discoveryTerms: discovery,
    keys,
    binding: (stream) => blake2b(unhex(fingerprint), { length: BINDING_BYTES, person: stream }),
  };
}

function collectorsOf(fields: Fields): readonly string[] {
  const named = listOf(fields, "collectors", MOST_COLLECTORS, NAME).map((name) =>
    textOf(own({ collectors: name }), "collectors", IDENTIFIER, NAME),
  );
  if (named.length > 0 && new Set(named).size === named.length) return named;
  throw new FormatError(`${NAME}: collectors must be one name or several different names`);
}

type Build = (terms: MechanismTerms, domain: number | undefined) => Mechanism;

/** Return the campaign with its mechanism. Throws FormatError if the mechanism does not allow a parameter. */
export function campaignFrom(
  form: Form,
  build: Build,
  itemOfNumber?: ItemOfNumber,
  itemOfUrl?: ItemOfUrl,
  strata?: Strata,
): Campaign {
  const { mechanismTerms: terms, discoveryTerms: discovery, noise } = form;
  const domain = domainOf(form, strata);
  const built = terms === undefined ? undefined : inMechanism(() => build(terms, domain));
  const mechanism = noise === undefined ? built : truthful(domain ?? 0);
  const layer = noise === undefined ? 0 : WINDOW_BYTES + BINDING_BYTES + WINDOW_BYTES + SEAL_BYTES;
  const lengths: Readonly<Record<Stream, number>> = {
    reports: (strata?.stratumBytes ?? 0) + BINDING_BYTES + (mechanism?.reportBytes ?? 0) + SEAL_BYTES + layer,
    discovery: 2 * (BINDING_BYTES + SEAL_BYTES) + HASH_BYTES + LENGTH_BYTES + (discovery?.maxValueBytes ?? 0),
  };
  return { ...form, mechanism, itemOfNumber, itemOfUrl, strata, publicStrata: strata?.publicStrata ?? 1, sealedBytes: (stream) => lengths[stream] };
}

function inMechanism<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof FormatError ? new FormatError(`${NAME}: mechanism: ${error.message}`) : error;
  }
}

function unbuilt(): never {
  throw new FormatError(`${NAME} has no mechanism`);
}
