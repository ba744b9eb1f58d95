// Writes src/values/unassigned.ts and invisible.ts from the tables that the Python client reads.
import { readFileSync, writeFileSync } from "node:fs";

const formats = new URL("../../../hushcount/formats/", import.meta.url);
const values = new URL("../src/values/", import.meta.url);
const linesOf = (name) => readFileSync(new URL(name, formats), "ascii").trim().split("\n");
// Digits to base 32, 0 to 31; all digits of a number except its last one are 32 more.
const digitsOf = (step) => [...step.toString(32)].map((digit, place, all) => parseInt(digit, 32) + (place < all.length - 1 ? 32 : 0));
const stepsOf = (ranges) => {
  const edges = ranges.map((range) => range.split("..").map((code) => parseInt(code, 16))).flatMap((ends) => [ends[0], ends.at(-1) + 1]);
  const digits = edges.flatMap((edge, place) => digitsOf(edge - (edges[place - 1] ?? 0)));
  const steps = String.fromCharCode(...digits.map((digit) => digit + 48));
  return steps.match(/.{1,110}/g).map((line) => `  ${JSON.stringify(line)}`).join(" +\n");
};
writeFileSync(
  new URL("unassigned.ts", values),
  `/** Code points that Unicode 13.0 does not assign: steps to the next unassigned, the next assigned, and so on. A character's
 * code less 48 is a digit to base 32, or 32 more if another digit of the step follows. Written by scripts/make-unassigned.mjs. */
export const STEPS =\n${stepsOf(linesOf("unassigned-13.0.txt"))};\n`,
);
const properties = linesOf("invisible-13.0.txt").slice(1).map((line) => line.split(" "));
writeFileSync(
  new URL("invisible.ts", values),
  `/** Code points with a property in Unicode 13.0, in steps as those of unassigned.ts. Written by scripts/make-unassigned.mjs. */
${properties.map(([name, ...ranges]) => `export const ${name.toUpperCase()} =\n${stepsOf(ranges)};\n`).join("")}`,
);
