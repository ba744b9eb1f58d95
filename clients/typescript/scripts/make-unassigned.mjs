// Writes src/values/unassigned.ts from the table that Python's client reads.
import { readFileSync, writeFileSync } from "node:fs";

const table = new URL("../../../hushcount/formats/unassigned-13.0.txt", import.meta.url);
const edges = readFileSync(table, "ascii")
  .trim()
  .split("\n")
  .flatMap((line) => line.split("..").map((code, last) => parseInt(code, 16) + last));
// Digits to base 32, 0 to 31; all digits of a number except its last one are 32 more.
const digitsOf = (step) => [...step.toString(32)].map((digit, place, all) => parseInt(digit, 32) + (place < all.length - 1 ? 32 : 0));
const digits = edges.flatMap((edge, place) => digitsOf(edge - (edges[place - 1] ?? 0)));
const steps = String.fromCharCode(...digits.map((digit) => digit + 48));
const lines = steps.match(/.{1,110}/g).map((line) => `  ${JSON.stringify(line)}`);
writeFileSync(
  new URL("../src/values/unassigned.ts", import.meta.url),
  `/** Code points that Unicode 13.0 does not assign: steps to the next unassigned, the next assigned, and so on. A character's
 * code less 48 is a digit to base 32, or 32 more if another digit of the step follows. Written by scripts/make-unassigned.mjs. */
export const STEPS =\n${lines.join(" +\n")};\n`,
);
