/** When windows begin, as in the vectors; and lists of windows that are refused. */

import { describe, expect, test } from "vitest";
import { startsOf } from "../src/budget/starts.js";
import { openCampaign } from "../src/campaign/campaign.js";
import { requireWindows } from "../src/campaign/windows.js";
import { FormatError, Untrusted } from "../src/errors.js";
import { vectors, type Entry } from "./vectors.js";

const { accept, refuse } = vectors("windows");
const DAY = 86_400_000;
const given = (windows: Entry["windows"]) => ({ id: "listed", windows, passes: undefined });

describe("windows", () => {
  test.each(accept.map((entry, place) => [place, entry] as const))("vector %i", (_, { windows, seconds, moment, begins, next }) => {
    requireWindows(given(windows), 0, FormatError, Untrusted);
    const starts = startsOf(1000 * (seconds ?? 1), { windows });
    expect([starts.at(1000 * moment), starts.after(1000 * moment)]).toEqual([1000 * begins, 1000 * next]);
  });

  test.each(refuse.map((entry, place) => [place, entry] as const))("refused %i", (_, { windows }) => {
    expect(() => { requireWindows(given(windows), 0, FormatError, Untrusted); }).toThrow(FormatError);
  });

  test("are no shorter than the app allows", async () => {
    const file = vectors("campaigns").accept.find(({ name }) => name === "windows")?.file;
    expect((await openCampaign(file, DAY)).windows?.unit).toBe("day");
    await expect(openCampaign(file, DAY + 1)).rejects.toThrow(Untrusted);
  });
});
