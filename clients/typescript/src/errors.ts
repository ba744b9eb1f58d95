export class HushcountError extends Error {
  override readonly name: string = "HushcountError";
}
export class UsageError extends HushcountError {
  override readonly name: string = "UsageError";
}
export class FormatError extends UsageError {
  override readonly name: string = "FormatError";
}
/** The bytes are not those that were signed, or no trusted key signed them. */
export class SignatureError extends HushcountError {
  override readonly name = "SignatureError";
}
/** The campaign is not what the policy allows: nothing may be reported with it. */
export class Untrusted extends HushcountError {
  override readonly name = "Untrusted";
}
/** The device cannot keep what it must keep: nothing was written. */
export class StoreError extends HushcountError {
  override readonly name = "StoreError";
}
/** The collector cannot be reached, or its answer cannot be used; it may at a later try. */
export class DeliveryError extends HushcountError {
  override readonly name = "DeliveryError";
}
/** The budget has no room for a report, and the app chose that the client then makes none. */
export class BudgetSpent extends HushcountError {
  override readonly name = "BudgetSpent";
}
/** The person opted out: nothing is made any more. */
export class OptedOut extends HushcountError {
  override readonly name = "OptedOut";
}
/** The client has made as many reports of a stream in this window as the campaign's cap lets it. */
export class OverCap extends HushcountError {
  override readonly name = "OverCap";
}

/** There is no campaign file yet; nothing is wrong: report again later. */
export class NotYet extends HushcountError {
  override readonly name = "NotYet";
}
/** As many reports wait as may: nothing was made, and no budget spent. */
export class QueueFull extends HushcountError {
  override readonly name = "QueueFull";
}
/** The evaluator gave no usable answer: a report with nothing to discover goes in place of the value's. */
export class Unanswered extends HushcountError {
  override readonly name = "Unanswered";
}
