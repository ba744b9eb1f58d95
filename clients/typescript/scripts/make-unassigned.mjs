// Writes src/values/unassigned.ts from the table that Python's client reads.
import { readFileSync, writeFileSync } from "node:fs";

const table = new URL("../../../hushcount/formats/unassigned-13.0.txt", import.meta.url);
const edges = readFileSync(table, "ascii")
  .trim()
  .split("\n")
  .flatMap((line) => line.split("..").map((code, last) => parseInt(code, 16) + last));
const steps = edges.map((edge, place) => (edge - (edges[place - 1] ?? 0)).toString(36)).join(" ");
const lines = steps.match(/.{1,110}(?: |$)/g).map((line) => `  "${line}"`);
writeFileSync(
  new URL("../src/values/unassigned.ts", import.meta.url),
  `/** Code points that Unicode 13.0 does not assign: steps, in base 36, to the next unassigned, the next assigned, and so on.
 * Written by scripts/make-unassigned.mjs. */
export const STEPS =\n${lines.join(" +\n")};\n`,
);
