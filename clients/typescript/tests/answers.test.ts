/** The table of answers that Python's client is held to. */

import { expect, test } from "vitest";
import { utf8 } from "../src/bytes.js";
import { verdict } from "../src/sender/verdict.js";
import { vectors } from "./vectors.js";

test("every answer means what the table says", () => {
  let cases = 0;
  const wrong: unknown[] = [];
  const { accept, refuse } = vectors("answers");
  for (const row of [...accept, ...refuse]) {
    const wanted = [row.fate, row.reason ?? "", row.wait];
    for (const status of row.status) {
      for (const [type, text] of row.body) {
        for (const asked of row.retry_after) {
          for (const reports of row.reports) {
            const headers = new Headers(asked === "" ? {} : { "Retry-After": asked });
            // As `send` reads them: a Response cannot have every status.
            const media = type.split(";")[0].trim().toLowerCase();
            const { fate, reason, wait } = verdict({ status, headers, media, body: utf8(text) }, reports);
            const found = [fate, reason, wait / 1000];
            cases += 1;
            if (String(found) !== String(wanted)) wrong.push({ status, text, asked, reports, found, wanted });
          }
        }
      }
    }
  }
  expect([wrong.length, wrong.slice(0, 3)]).toEqual([0, []]);
  expect(cases).toBeGreaterThan(17_000);
});
