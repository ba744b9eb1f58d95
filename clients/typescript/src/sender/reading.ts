/** How a sender reads campaign files. */

import type { Reading } from "./present.js";
import type { SenderOptions } from "./options.js";

export function reading(_options: SenderOptions): Reading {
  throw new Error("core");
}
