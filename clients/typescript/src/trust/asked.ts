/** What a campaign file says that its clients are asked for, as policy, budget and sender read it. */

/** The two streams of a campaign. */
export type Stream = "reports" | "discovery";

/** A campaign file that was read and checked; hashes are in hexadecimal digits. */
export interface Asked {
  readonly id: string;
  readonly epoch: number;
  readonly fingerprint: string;
  readonly terms: string;
  readonly previous: string | undefined;
  readonly head: string;
  readonly streams: readonly Stream[];
  /** Local epsilon of one frequency report; 0 without frequency reports. */
  readonly epsilon: number;
  /** Whether clients repeat their answer to a value for the epoch, and to how many values. */
  readonly memory: boolean;
  readonly memoryValues: number;
  /** The keep rule's (epsilon, delta) as replace-one; 0 without discovery. */
  readonly discovery: { readonly epsilon: number; readonly delta: number };
  readonly cap: number;
  readonly minimumBatch: number;
  readonly shuffleDelta: number;
  sealedBytes(stream: Stream): number;
}
