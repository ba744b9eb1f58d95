import { expect, test } from "vitest";
import { DeliveryError } from "../src/errors.js";
import { part } from "../src/loading.js";

test("a part that cannot be loaded may be at a later try, and no address is repeated", async () => {
  const failed = part(Promise.reject(new TypeError("Failed to fetch https://example.com/x.js?secret")));
  await expect(failed).rejects.toThrow(DeliveryError);
  await expect(failed).rejects.not.toThrow(/example|secret/);
  expect(await part(Promise.resolve(1))).toBe(1);
});
