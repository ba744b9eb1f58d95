// The programs of the README, which other pages repeat, are programs.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import ts from "typescript";
import { expect, test } from "vitest";

const place = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const blocks = [...readFileSync(place("README.md"), "utf8").matchAll(/^```js\n([^]*?)^```$/gm)].map((found) => found[1]!);
const wrong = blocks[0]!.replace("sender.report", "sender.reports");
const sources = new Map([...blocks, wrong].map((code, number) => [place(`tests/block-${number}.mjs`), code]));
const OPTIONS: ts.CompilerOptions = {
  allowJs: true,
  checkJs: true,
  lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
  module: ts.ModuleKind.NodeNext,
  noEmit: true,
  paths: { hushcount: [place("src/index.ts")], "hushcount/node": [place("src/node/index.ts")] },
  strict: true,
  target: ts.ScriptTarget.ES2022,
  types: ["node"],
};
/** A block may name what its reader has: these say that a name is not declared. */
const UNDECLARED = [2304, 2552, 18004];

test("each block is a program, and a name that the client lacks is found", () => {
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile } = host;
  host.fileExists = (path) => sources.has(path) || fileExists(path);
  host.readFile = (path) => sources.get(path) ?? readFile(path);
  const program = ts.createProgram([...sources.keys()], OPTIONS, host);
  const faults = [...sources.keys()].map((path) =>
    program
      .getSemanticDiagnostics(program.getSourceFile(path))
      .filter(({ code }) => !UNDECLARED.includes(code))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " ")),
  );
  expect(faults.pop()!.join()).toContain("'reports' does not exist");
  expect(faults).toEqual(blocks.map(() => []));
  expect(blocks.length).toBeGreaterThan(3);
});
