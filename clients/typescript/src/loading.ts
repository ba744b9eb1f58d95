/** Parts of this client that a page loads late. */

import { DeliveryError } from "./errors.js";

/**
 * Return a part once it is loaded. Throws DeliveryError if the part cannot be loaded; the browser's own message is left
 * out, because it has addresses.
 */
export async function part<Part>(loading: Part | Promise<Part>): Promise<Part> {
  try {
    return await loading;
  } catch {
    throw new DeliveryError("a file of this client cannot be loaded: try again, or serve all files of the package");
  }
}
