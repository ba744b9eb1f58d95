/** Addresses: a client replaces a URL by its site, its host, or its host and the begin of its path. */

import type { Form } from "../campaign/campaign.js";
import type { Assigned } from "./unicode13.js";

const MOST_CHARACTERS = 8192;
const MOST_SEGMENTS = 8;
const MOST_SUFFIXES = 20_000;
const MOST_ITEM_BYTES = 4096;
const ID = ":id";
const SUFFIX = /^(?:!|\*\.)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,5}$/;
const PARTS = /^http(s?):[/\\]*([^/\\?#]*)([^?#]*)/i;
const PORT = /:([0-9]*)$/;
const DOTS = /[.\u3002\uff0e\uff61]/;
const LABEL = /^[a-z0-9_-]{1,63}$/;
const MOST_HOST_CHARACTERS = 253;
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;
/** Last labels of names that are not public. */
const LOCAL = "alt arpa corp home i2p internal intranet invalid lan local localdomain localhost onion private test".split(" ");
/** What no label has beside other letters than ASCII; browsers differ in the invisible ones. */
const UNFIT = /[\0-,./:-`{-\x7f\u1806\u180e\u200c\u200d]/;
const RIGHT_TO_LEFT = "[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]";
const ANY_RIGHT = new RegExp(RIGHT_TO_LEFT, "u");
const ALL_RIGHT = new RegExp(`^${RIGHT_TO_LEFT}+$`, "u");
/** The encoded characters / ? # and \, which servers read in different ways. */
const HIDING = /%(?:2f|3f|23|5c)/i;
const DOT = /^(?:\.|%2e)$/i;
const DOT_DOT = /^(?:\.|%2e){2}$/i;
const ID_FORMS = [/%[0-9a-f]{2}/i, /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i, /[0-9a-f]{16}/i];
const DIGITS = 8;
const RUN = /[A-Za-z0-9+]{16,}/g;
const URL_RUN = /[A-Za-z0-9+_-]{16,}/g;
const TOKEN = /[A-Za-z0-9]{8,}/g;
const CHANGES = /[0-9][A-Za-z]+[0-9]+[A-Za-z]|[A-Za-z][0-9]+[A-Za-z]+[0-9]/;
const WORD = /^(?:[A-Za-z]?[a-z]+|[A-Z]+)$/;

/** Functions of the page that this module uses, so that no bundle has them twice. */
export interface Tools {
  readonly nfc: (text: string, assigned: Assigned) => string;
  readonly faultOfText: (text: string, assigned: Assigned) => string | undefined;
  readonly FormatError: new (message: string) => Error;
}

/** Returns the text that stands for a URL; "" if it is no public address, or of none of these hosts, so it counts as "other". */
export type ItemOfUrl = (url: string, assigned: Assigned, hosts: ReadonlySet<string> | undefined) => string;

/** Return the items of a campaign file's addresses. Throws FormatError: its section is wrong. */
export function itemOfUrl(tools: Tools, { url, number, discoveryTerms }: Form): ItemOfUrl {
  const { take, segments, suffixes, ...more } = url as unknown as Readonly<Record<string, unknown>>;
  const isTaken = take === "site" || take === "host" || take === "path";
  const isForm = isTaken && (segments !== undefined) === (take === "path") && (suffixes !== undefined) === (take === "site");
  if (!isForm || Object.keys(more).length > 0 || number !== undefined) {
    throw new tools.FormatError("url must take site, host or path, with suffixes for a site and segments for a path");
  }
  if (segments !== undefined && !isCount(segments)) {
    throw new tools.FormatError(`url: segments must be 1 to ${String(MOST_SEGMENTS)}`);
  }
  if (suffixes !== undefined && !areSuffixes(suffixes)) {
    throw new tools.FormatError("url: suffixes must be rules of the public suffix list, in rising order");
  }
  if (segments !== undefined && discoveryTerms !== undefined && !discoveryTerms.isOblivious) {
    throw new tools.FormatError("url: paths can be guessed, so their discovery must have the hash oblivious");
  }
  const most = discoveryTerms?.maxValueBytes ?? MOST_ITEM_BYTES;
  const rules = suffixes && new Set(suffixes);
  return (text, assigned, hosts) => {
    const address = addressOf(tools, text, assigned);
    if (address === undefined || hosts?.has(address.host) === false) return "";
    const host = rules === undefined ? address.host : siteOf(address.host, rules);
    if (segments === undefined) return host.length <= most ? host : "";
    for (let number = Math.min(segments, address.segments.length); number >= 0; number -= 1) {
      const item = `${host}/${address.segments.slice(0, number).join("/")}`;
      if (item.length <= most) return item;
    }
    return "";
  };
}

/** Return the domain that somebody registered: the public suffix and one more label; "" if there is none. */
function siteOf(host: string, rules: ReadonlySet<string>): string {
  const labels = host.split(".");
  const length = suffixLength(labels, rules);
  return length < labels.length ? labels.slice(-1 - length).join(".") : "";
}

function suffixLength(labels: readonly string[], rules: ReadonlySet<string>): number {
  for (let first = 0; first < labels.length; first += 1) {
    const [name, above] = [labels.slice(first).join("."), labels.slice(first + 1).join(".")];
    if (rules.has(`!${name}`)) return labels.length - first - 1;
    if (rules.has(name) || rules.has(`*.${above}`)) return labels.length - first;
  }
  return 1;
}

/** Return the host and the path of a URL as browsers read it (WHATWG); undefined if it is no public address of the web. */
function addressOf(tools: Tools, url: string, assigned: Assigned): { host: string; segments: readonly string[] } | undefined {
  if (url.length > 2 * MOST_CHARACTERS || Array.from(url).length > MOST_CHARACTERS || /\p{Cs}/u.test(url)) return undefined;
  let end = url.length;
  while (end > 0 && url.charCodeAt(end - 1) <= 32) end -= 1;
  const found = PARTS.exec(url.slice(0, end).replace(/^[\0- ]+/, "").replace(/[\t\n\r]/g, ""));
  if (found === null) return undefined;
  const [, secure, authority = "", path = ""] = found;
  const host = hostOf(tools, authority, secure === "" ? "80" : "443", assigned);
  const segments = segmentsOf(path, assigned);
  return host === undefined || segments === undefined ? undefined : { host, segments };
}

function hostOf(tools: Tools, authority: string, usualPort: string, assigned: Assigned): string | undefined {
  const port = PORT.exec(authority)?.[1];
  if (port !== undefined && port !== "" && port.replace(/^0+/, "") !== usualPort) return undefined;
  const name = decoded(authority.replace(PORT, ""));
  if (name === undefined || authority.includes("@")) return undefined;
  const given = name.split(DOTS);
  if (given[given.length - 1] === "") given.pop();
  if (given.length > MOST_HOST_CHARACTERS) return undefined;
  const labels = given.map((label) => labelOf(tools, label, assigned) ?? "");
  const last = labels[labels.length - 1] ?? "";
  const isPublic = labels.length > 1 && !labels.includes("") && !LOCAL.includes(last) && !NUMBER.test(last);
  const host = labels.join(".");
  return isPublic && host.length <= MOST_HOST_CHARACTERS ? host : undefined;
}

/**
 * Return a label of a host in lower case and Punycode (UTS 46); undefined if it is not valid.
 *
 * Versions of UTS 46 differ in characters that Unicode 13.0 does not assign, in invisible ones, and browsers differ in text
 * of two directions. Here labels with these are not valid. A label in Punycode is taken as it is.
 */
function labelOf({ nfc, faultOfText }: Tools, label: string, assigned: Assigned): string | undefined {
  if (/^[\0-\x7f]*$/.test(label)) {
    const text = label.toLowerCase();
    return LABEL.test(text) ? text : undefined;
  }
  if (Array.from(label).length > MOST_HOST_CHARACTERS) return undefined;
  // Each letter by itself, because a sigma at the end of a word has another lower case.
  const letters = Array.from(label, (letter) => letter.toLowerCase()).join("");
  const text = nfc(letters, assigned);
  const isKnown = Array.from(label).every((letter) => assigned(letter.codePointAt(0) ?? 0));
  if (!isKnown || faultOfText(text, assigned) !== undefined) return undefined;
  const compatible = text.normalize("NFKC");
  // Browsers differ in the capital sharp s too.
  if (label.includes("\u1e9e") || UNFIT.test(text + compatible) || /^xn--/i.test(compatible)) return undefined;
  if (ANY_RIGHT.test(compatible) && !(ALL_RIGHT.test(compatible) && /^\p{L}[\p{L}\p{M}]*$/u.test(compatible))) return undefined;
  try {
    const { hostname } = new URL(`https://${text}.a`);
    const made = hostname.endsWith(".a") ? hostname.slice(0, -2) : "";
    return LABEL.test(made) ? made : undefined;
  } catch {
    return undefined;
  }
}

/** Return the segments of a path, without dot segments and empty ones; undefined if a segment hides a separator. */
function segmentsOf(path: string, assigned: Assigned): readonly string[] | undefined {
  if (HIDING.test(path)) return undefined;
  const kept: string[] = [];
  for (const segment of path.split(/[/\\]/).slice(1)) {
    if (DOT_DOT.test(segment)) kept.pop();
    else if (!DOT.test(segment)) kept.push(segment);
  }
  return kept.map((segment) => segmentOf(segment, assigned)).filter((segment) => segment !== "");
}

/** Return a segment in one spelling, without its parameters; ":id" if it looks like an id; "" if nothing is left. */
function segmentOf(segment: string, assigned: Assigned): string {
  const text = decoded(segment)?.replace(/;[^]*$/, "");
  if (text === undefined || isId(text, assigned)) return ID;
  if (text === "." || text === "..") return "";
  return encodeURIComponent(text).replace(/%(?:24|26|2B|2C|3A)/g, (code) => decodeURIComponent(code));
}

/** Return whether a decoded segment may be an id, a secret or a person's address; in doubt it may. */
function isId(segment: string, assigned: Assigned): boolean {
  if (!Array.from(segment).every((letter) => assigned(letter.codePointAt(0) ?? 0))) return true;
  if (/[@=]/.test(segment.normalize("NFKC")) || ID_FORMS.some((form) => form.test(segment))) return true;
  if ((segment.match(/\p{Nd}/gu) ?? []).length >= DIGITS) return true;
  if ((segment.match(RUN) ?? []).some((run) => !WORD.test(run))) return true;
  if ((segment.match(TOKEN) ?? []).some((run) => CHANGES.test(run) || hasAllKinds(run))) return true;
  return (segment.match(URL_RUN) ?? []).some(hasAllKinds);
}

function hasAllKinds(run: string): boolean {
  return /[a-z]/.test(run) && /[A-Z]/.test(run) && /[0-9]/.test(run);
}

/** Return a text without percent-encoding; undefined if its bytes are not UTF-8. An incomplete escape stays as it is. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, "%25"));
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_SEGMENTS;
}

function areSuffixes(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MOST_SUFFIXES &&
    value.every((rule) => typeof rule === "string" && SUFFIX.test(rule)) &&
    value.every((rule: string, place) => place === 0 || (value[place - 1] as string) < rule)
  );
}
