// Builds `dist` when npm packs this folder or installs it from a checkout. Of a folder that npm only links, it fetches no tools.
import { execSync } from "node:child_process";
import { existsSync } from "node:fs";

const run = (line) => execSync(line, { stdio: ["ignore", process.stderr, process.stderr] });
if (!existsSync("node_modules/typescript")) run("npm ci --ignore-scripts --no-audit --no-fund --loglevel=error");
run("npm run --silent build");
