/** What `Sender.report` returns, the same words as in Python: "queued", or why nothing was queued. */
export type Reported =
  | "queued"
  | "not_asked"
  | "over_cap"
  | "budget_spent"
  | "opted_out"
  | "queue_full"
  | "not_yet"
  | "untrusted"
  | "storage";

export class HushcountError extends Error {
  override readonly name: string = "HushcountError";
  /** What `Sender.report` returns if this error stops a report. */
  readonly word: Exclude<Reported, "queued"> = "storage";
}
export class UsageError extends HushcountError {
  override readonly name: string = "UsageError";
}
export class FormatError extends UsageError {
  override readonly name: string = "FormatError";
}
/** No key of the campaign file is valid now. */
export class NoValidKey extends UsageError {
  override readonly word = "not_yet";
}
/** The bytes differ from the signed bytes, or no trusted key signed these bytes. */
export class SignatureError extends HushcountError {
  override readonly name = "SignatureError";
}
/** The policy does not allow the campaign: no report may be made for it. */
export class Untrusted extends HushcountError {
  override readonly name = "Untrusted";
  override readonly word = "untrusted";
}
/** The device's store failed, and nothing was written. */
export class StoreError extends HushcountError {
  override readonly name = "StoreError";
}
/** The collector cannot be reached, or its answer cannot be used; a later try may succeed. */
export class DeliveryError extends HushcountError {
  override readonly name = "DeliveryError";
}
/** The campaign's sample does not contain this installation, so it makes no report. */
export class NotAsked extends HushcountError {
  override readonly name = "NotAsked";
  override readonly word = "not_asked";
}
/** The budget is too small for a report, and the app chose that no report is made in this case. */
export class BudgetSpent extends HushcountError {
  override readonly name = "BudgetSpent";
  override readonly word = "budget_spent";
}
/** The person opted out, so no more reports are made. */
export class OptedOut extends HushcountError {
  override readonly name = "OptedOut";
  override readonly word = "opted_out";
}
/** The client has made as many reports of a stream in this window as the campaign's cap allows. */
export class OverCap extends HushcountError {
  override readonly name = "OverCap";
  override readonly word = "over_cap";
}

/** The client has no campaign file yet. This is not a fault; report the value again later. */
export class NotYet extends HushcountError {
  override readonly name = "NotYet";
  override readonly word = "not_yet";
}
/** The queue is full, so no report was made, and no budget was spent. */
export class QueueFull extends HushcountError {
  override readonly name = "QueueFull";
  override readonly word = "queue_full";
}
/** The evaluator gave no usable answer, so a blank is sent instead of the value's report. */
export class Unanswered extends HushcountError {
  override readonly name = "Unanswered";
}
