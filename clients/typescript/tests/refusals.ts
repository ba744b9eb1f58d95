/** What a refusal must be: an error of ours, that repeats no value. */

import { expect } from "vitest";
import { HushcountError } from "../src/errors.js";

/** Expect that the work is refused by an error of ours, and return its sentence. */
export async function refusal(work: () => unknown): Promise<string> {
  const error: unknown = await (async () => work())().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(HushcountError);
  return (error as Error).message;
}
