/** Reads, from a collector's documents, the parts of a campaign that a client needs; no part is verified yet. */

import { FormatError } from "../errors.js";
import { parseJson } from "../json.js";
import { own } from "../own.js";
import { LOG_BYTES, parseLog, type CampaignLog } from "../trust/campaign-log.js";
import { parseCampaignSignature, type CampaignSignature } from "../trust/delegation.js";
import { fetchDocument, isSame, NotServed, type Document, type Documents } from "./documents.js";
import { readBounded, type Fetch } from "./http.js";

const CAMPAIGN_BYTES = 1 << 20;
const SIGNATURE_BYTES = 4096;
const NAME = "the campaign file";

/** One epoch of a campaign as a collector serves it; only its form is checked. */
export interface Publication {
  /** The data of the campaign file. */
  readonly file: unknown;
  readonly signature: CampaignSignature | undefined;
  readonly log: CampaignLog | undefined;
  /** The bytes of the dictionary, one item a line. */
  readonly dictionary: Uint8Array | undefined;
}

/** The facts of a campaign file that are needed to fetch the other documents. */
export interface Named {
  readonly fingerprint: string;
  /** The digest of the dictionary; undefined for an open domain. */
  readonly dictionary: string | undefined;
}

/** The checks of a campaign file before the documents that it names are fetched. */
export interface Rules {
  /** The greatest length of a dictionary in bytes, both packed and unpacked. */
  readonly mostBytes: number;
  /** Check the form of a campaign file. Throws FormatError. */
  named(file: unknown): Named;
  /** Check also the policy's demands, as far as possible without the documents that the file names. Throws Untrusted too. */
  check(file: unknown, signature: CampaignSignature | undefined): Promise<Named>;
}

/**
 * Fetch the current campaign file; and the campaign's other documents, except documents that are kept.
 *
 * @param base the address of the campaign at its collector.
 * @throws DeliveryError a document cannot be fetched now. FormatError: the campaign file is invalid. Untrusted: the
 * policy refuses the campaign file.
 */
export async function fetchDocuments(
  fetcher: Fetch,
  base: string,
  kept: Documents,
  rules: Rules,
  now: number,
): Promise<Documents & { readonly campaign: Document }> {
  const campaign = await fetchDocument(fetcher, base, CAMPAIGN_BYTES, now);
  const before = kept.campaign;
  if (before !== undefined && isSame(before, campaign)) return own({ ...kept, campaign });
  const file = parseJson(campaign.data, CAMPAIGN_BYTES, NAME);
  const { fingerprint, dictionary: digest } = await rules.check(file, signatureOf(campaign.signature));
  const log = await fetchDocument(fetcher, `${base}/log`, LOG_BYTES, now).catch((error: unknown) => {
    // If there is no log, the policy decides whether a log is needed.
    if (error instanceof NotServed) return undefined;
    throw error;
  });
  const path = `${base}/dictionary?fingerprint=${fingerprint}`;
  const isKept = before !== undefined && rules.named(parseJson(before.data, CAMPAIGN_BYTES, NAME)).dictionary === digest;
  const dictionary =
    digest === undefined
      ? undefined
      : ((isKept ? kept.dictionary : undefined) ?? (await fetchDocument(fetcher, path, rules.mostBytes, now)));
  return own({ campaign, ...(log === undefined ? {} : { log }), ...(dictionary === undefined ? {} : { dictionary }) });
}

/** Parse documents, with at most `mostBytes` of a dictionary. Throws FormatError if a document is malformed. */
export async function readPublication({ campaign, log, dictionary }: Documents, mostBytes: number): Promise<Publication> {
  if (campaign === undefined) throw new FormatError(`${NAME} is missing`);
  return {
    file: parseJson(campaign.data, CAMPAIGN_BYTES, NAME),
    signature: signatureOf(campaign.signature),
    log: log === undefined ? undefined : parseLog(parseJson(log.data, LOG_BYTES, "the log"), "the log"),
    dictionary: dictionary === undefined ? undefined : await unpacked(dictionary, mostBytes),
  };
}

/** Read a signature file from a byte sequence of RFC 8941. */
function signatureOf(header: string): CampaignSignature | undefined {
  if (header === "") return undefined;
  const [, text] = /^:([A-Za-z0-9+/=]{1,5464}):$/.exec(header) ?? [];
  const name = "the campaign's signature";
  if (text === undefined) throw new FormatError(`${name} is not a byte sequence of at most ${String(SIGNATURE_BYTES)} bytes`);
  let letters: string;
  try {
    letters = atob(text);
  } catch {
    throw new FormatError(`${name} is not a byte sequence`);
  }
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return parseCampaignSignature(parseJson(bytes, SIGNATURE_BYTES, name), name);
}

async function unpacked({ data }: Document, mostBytes: number): Promise<Uint8Array> {
  // The first bytes decide whether the dictionary is packed, whatever type the server states, because no UTF-8 text
  // begins with these bytes.
  if (data[0] !== 0x1f || data[1] !== 0x8b) return data;
  const stream = new Blob([Uint8Array.from(data)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const plain = await readBounded(stream, mostBytes).catch(() => undefined);
  if (plain !== undefined) return plain;
  throw new FormatError(
    `the dictionary is not a gzip file of at most ${String(mostBytes)} bytes unpacked: raise max_dictionary_bytes in the ` +
      "policy if your users' devices may fetch a longer one",
  );
}
