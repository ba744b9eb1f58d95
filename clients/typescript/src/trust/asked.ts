/** The facts of a campaign file that policy, budget and sender read: what the campaign asks of its clients. */

import type { Sample } from "./sample.js";

/** The two streams of a campaign. */
export type Stream = "reports" | "discovery";

/** Passes: how many seconds each is good, and from the day `first` on a hash of the issuer's keys of each day. */
export interface PassTerms {
  readonly seconds: number;
  readonly first: string;
  readonly days: readonly string[];
}

/** When windows of calendar days, weeks or months begin, in seconds since 1970. */
export interface WindowTerms {
  readonly unit: string;
  readonly starts: readonly number[];
}

/** Noise of the mixes: the budget of a client's reports in one window, and the length of windows unless they are listed. */
export interface NoiseTerms {
  readonly epsilon: number;
  readonly delta: number;
  readonly seconds?: number;
}

/** Values are addresses: what a client takes of each. */
export interface UrlTerms {
  readonly take: string;
  readonly segments?: number;
  readonly suffixes?: readonly string[];
}

/** What clients are broken down by. */
export interface AxesTerms {
  readonly listed: readonly unknown[];
  readonly key: string;
}

/** The facts of the file without its mechanism; hashes are in hexadecimal digits. */
export interface Terms {
  readonly id: string;
  readonly epoch: number;
  readonly fingerprint: string;
  readonly terms: string;
  readonly previous: string | undefined;
  /** The evaluator's key; undefined unless discovery is oblivious. */
  readonly evaluatorKey: string | undefined;
  readonly head: string;
  readonly streams: readonly Stream[];
  /** Local epsilon of one frequency report; 0 without frequency reports, and with noise: then clients do not randomise. */
  readonly epsilon: number;
  /** Noise of the mixes, in place of a mechanism; undefined: none. */
  readonly noise: NoiseTerms | undefined;
  /** Whether clients repeat their answer to a value throughout the epoch, and the number of values for which they do. */
  readonly memory: boolean;
  readonly memoryValues: number;
  /** The keep rule's (epsilon, delta), replace-one; 0 without discovery. */
  readonly discovery: { readonly epsilon: number; readonly delta: number };
  readonly cap: number;
  readonly minimumBatch: number;
  readonly shuffleDelta: number;
  /** The names of the collectors that take reports. */
  readonly collectors: readonly string[];
  /** Passes that clients need; undefined: none. */
  readonly passes: PassTerms | undefined;
  /** When windows begin; undefined: they have the length that the app states. */
  readonly windows: WindowTerms | undefined;
  /** What is taken of addresses; undefined: values are no addresses. */
  readonly url: UrlTerms | undefined;
  /** What clients are broken down by; undefined: nothing. */
  readonly axes: AxesTerms | undefined;
  /** Whether values are numbers. */
  readonly takesNumbers: boolean;
  /** Which clients are asked; undefined: all. */
  readonly sample: Sample | undefined;
}

/** A campaign file that was read and checked. */
export interface Asked extends Terms {
  /** The number of public strata, 1 without public axes. */
  readonly publicStrata: number;
  sealedBytes(stream: Stream): number;
}
