// Prints what a page loads, gzipped, and fails if it is more than these limits allow.
import { build } from "esbuild";
import { gzipSync } from "node:zlib";

const LIMITS = [
  ["a client of one campaign", "{ Client, MemoryStore, Newest, Policy }", 28_500],
  ["everything", "*", 36_000],
];
/** The curve, which only browsers without X25519 or Ed25519 load, and all else that is loaded where it is needed. */
const LATE = 30_000;

for (const [name, imported, limit] of LIMITS) {
  const { outputFiles } = await build({
    stdin: { contents: `export ${imported} from "./dist/index.js";`, resolveDir: "." },
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    outdir: "size",
    write: false,
    metafile: true,
  });
  const sizes = new Map(outputFiles.map(({ path, contents }) => [path, gzipSync(contents, { level: 9 }).length]));
  const first = firstLoad(outputFiles);
  const sum = (paths) => paths.reduce((total, path) => total + (sizes.get(path) ?? 0), 0);
  const late = sum([...sizes.keys()].filter((path) => !first.has(path)));
  const now = sum([...first]);
  console.log(`${name}: ${now} bytes (at most ${limit}), and ${late} where they are needed (at most ${LATE})`);
  if (now > limit || late > LATE) process.exitCode = 1;
}

/** Return the files that the entry imports at once. */
function firstLoad(files) {
  const found = new Set();
  const add = (path) => {
    const file = files.find((each) => each.path === path);
    if (file === undefined || found.has(path)) return;
    found.add(path);
    for (const [, name] of file.text.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) {
      add(path.replace(/[^/\\]+$/, name));
    }
  };
  add(files.find(({ path }) => path.endsWith("stdin.js")).path);
  return found;
}
