// Prints the gzipped sizes of the files that a page loads, and fails if they exceed these limits.
import { build } from "esbuild";
import { gzipSync } from "node:zlib";

const PAGE = "{ Budget, Policy, Sender }";
/** Limits for a page with one campaign, by the module of its mechanism; mechanisms of `cells` are in the page itself. */
const CAMPAIGN_LIMITS = { cells: 39_700, sets: 41_450, weighted: 41_800, pools: 42_700 };
/** Limit for the additional files of an oblivious campaign, curve library included. */
const OBLIVIOUS_LIMIT = 22_000;
/** Limit for the whole package in one file, without the libraries for browsers that lack X25519, Ed25519 or SHA-512. */
const WHOLE_LIMIT = 55_400;
/** Limits for the additional file of a campaign with passes, with a sample, with numbers, addresses, axes, listed windows, noise, and with a mean. */
const MORE_LIMITS = { "/passes/asking.js": 3_400, "/trust/installation.js": 1_000, "/values/numbers.js": 1_050, "/values/urls.js": 2_200, "/values/strata.js": 1_150, "/campaign/windows.js": 700, "/campaign/noise.js": 1_000, "/families/lines.js": 500 };

const { outputFiles, metafile } = await built(PAGE, { splitting: true });
const sizes = new Map(outputFiles.map(({ path, contents }) => [path.split("/").pop(), gzipped(contents)]));
const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [path.split("/").pop(), output]));
for (const [family, limit] of Object.entries(CAMPAIGN_LIMITS)) {
  const loaded = new Set();
  for (const [path, { entryPoint }] of outputs) {
    if (entryPoint === "<stdin>" || entryPoint?.endsWith(`/families/${family}.js`) || entryPoint?.endsWith("/unassigned.js")) load(path, loaded);
  }
  say(`one campaign's needs, ${family}`, [...loaded].reduce((sum, path) => sum + sizes.get(path), 0), limit);
}
for (const [end, limit] of Object.entries(MORE_LIMITS)) {
  const [path] = [...outputs].find(([, { entryPoint }]) => entryPoint?.endsWith(end));
  say(`a campaign that needs ${end}, besides`, sizes.get(path), limit);
}
const page = new Set();
const asking = new Set();
for (const [path, { entryPoint }] of outputs) {
  if (entryPoint === "<stdin>") load(path, page);
  if (entryPoint?.endsWith("/oblivious.js") || entryPoint?.endsWith("/evaluations.js")) load(path, asking);
}
const more = [...asking].filter((path) => !page.has(path));
say("an oblivious campaign, besides", more.reduce((sum, path) => sum + sizes.get(path), 0), OBLIVIOUS_LIMIT);
const whole = await built("*", { external: ["@noble/curves/*", "@noble/hashes/*"] });
say("everything", gzipped(whole.outputFiles[0].contents), WHOLE_LIMIT);

function built(imported, options) {
  return build({
    stdin: { contents: `export ${imported} from "./dist/index.js";`, resolveDir: "." },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    outdir: "size",
    write: false,
    metafile: true,
    ...options,
  });
}

/** Add a file, and all files that it imports statically. */
function load(path, loaded) {
  if (loaded.has(path)) return;
  loaded.add(path);
  for (const { path: next, kind } of outputs.get(path).imports) if (kind === "import-statement") load(next.split("/").pop(), loaded);
}

function gzipped(contents) {
  return gzipSync(contents, { level: 9 }).length;
}

function say(name, bytes, limit) {
  console.log(`${name}: ${bytes} bytes (at most ${limit})`);
  if (bytes > limit) process.exitCode = 1;
}
