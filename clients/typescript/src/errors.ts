export class HushcountError extends Error {
  override readonly name: string = "HushcountError";
}
export class UsageError extends HushcountError {
  override readonly name: string = "UsageError";
}
export class FormatError extends UsageError {
  override readonly name: string = "FormatError";
}
/** The bytes differ from the signed bytes, or no trusted key signed these bytes. */
export class SignatureError extends HushcountError {
  override readonly name = "SignatureError";
}
/** The policy does not allow the campaign: no report may be made for it. */
export class Untrusted extends HushcountError {
  override readonly name = "Untrusted";
}
/** The device's store failed, and nothing was written. */
export class StoreError extends HushcountError {
  override readonly name = "StoreError";
}
/** The collector cannot be reached, or its answer cannot be used; a later try may succeed. */
export class DeliveryError extends HushcountError {
  override readonly name = "DeliveryError";
}
/** The budget is too small for a report, and the app chose that no report is made in this case. */
export class BudgetSpent extends HushcountError {
  override readonly name = "BudgetSpent";
}
/** The person opted out, so no more reports are made. */
export class OptedOut extends HushcountError {
  override readonly name = "OptedOut";
}
/** The client has made as many reports of a stream in this window as the campaign's cap allows. */
export class OverCap extends HushcountError {
  override readonly name = "OverCap";
}

/** The client has no campaign file yet. This is not a fault; report the value again later. */
export class NotYet extends HushcountError {
  override readonly name = "NotYet";
}
/** The queue is full, so no report was made, and no budget was spent. */
export class QueueFull extends HushcountError {
  override readonly name = "QueueFull";
}
/** The evaluator gave no usable answer, so a blank is sent instead of the value's report. */
export class Unanswered extends HushcountError {
  override readonly name = "Unanswered";
}
