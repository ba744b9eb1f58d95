/** The table of answers that Python's client is held to. */

import { expect, test } from "vitest";
import { utf8 } from "../src/bytes.js";
import { verdict } from "../src/sender/verdict.js";
import { vectors } from "./vectors.js";

const WINDOW = Date.parse("2026-10-22T00:00:00Z");

test("every answer means what the table says", () => {
  let cases = 0;
  const wrong: unknown[] = [];
  const { accept, refuse } = vectors("answers");
  for (const row of [...accept, ...refuse]) {
    const wanted = [row.fate, row.reason ?? "", row.wait];
    for (const status of row.status) {
      for (const [type, text] of row.body) {
        for (const asked of row.retry_after) {
          for (const [reports, date, age] of row.reports.flatMap((each: number) => row.date.map((said: string[]) => [each, ...said]))) {
            const headers = new Headers({ "Retry-After": asked, Date: date, Age: age });
            for (const name of ["Retry-After", "Date", "Age"]) if (headers.get(name) === "") headers.delete(name);
            // As `send` reads them: a Response cannot have every status.
            const media = type.split(";")[0].trim().toLowerCase();
            const { fate, reason, wait } = verdict({ status, headers, media, body: utf8(text) }, reports, WINDOW);
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
