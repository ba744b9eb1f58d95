export class HushcountError extends Error {
  override readonly name: string = "HushcountError";
}
export class UsageError extends HushcountError {
  override readonly name: string = "UsageError";
}
export class FormatError extends UsageError {
  override readonly name: string = "FormatError";
}
/** The bytes differ from the signed ones, or no trusted key signed them. */
export class SignatureError extends HushcountError {
  override readonly name = "SignatureError";
}
/** The policy does not allow the campaign: no report may be made for it. */
export class Untrusted extends HushcountError {
  override readonly name = "Untrusted";
}
/** The device's store failed: nothing was written. */
export class StoreError extends HushcountError {
  override readonly name = "StoreError";
}
/** The collector cannot be reached, or its answer cannot be used; a later try may succeed. */
export class DeliveryError extends HushcountError {
  override readonly name = "DeliveryError";
}
/** The budget is too small for a report, and the app chose that then none is made. */
export class BudgetSpent extends HushcountError {
  override readonly name = "BudgetSpent";
}
/** The person opted out: no more reports are made. */
export class OptedOut extends HushcountError {
  override readonly name = "OptedOut";
}
/** The client has made as many reports of a stream in this window as the campaign's cap allows. */
export class OverCap extends HushcountError {
  override readonly name = "OverCap";
}

/** There is no campaign file yet, which is no fault: report again later. */
export class NotYet extends HushcountError {
  override readonly name = "NotYet";
}
/** The queue is full: no report was made, and no budget was spent. */
export class QueueFull extends HushcountError {
  override readonly name = "QueueFull";
}
/** The evaluator gave no usable answer: a blank goes in place of the value's report. */
export class Unanswered extends HushcountError {
  override readonly name = "Unanswered";
}
