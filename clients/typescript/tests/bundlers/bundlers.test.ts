/**
 * The package as strangers use it: installed from a checkout by one command, packed, built into a page by each bundler
 * without any settings, and under Jest. Each page and each Jest test reports to a real collector.
 */

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { chromium, type Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = new URL("../../../../", import.meta.url).pathname;
const PACKAGE = join(ROOT, "clients/typescript");
const APP = new URL("app/", import.meta.url).pathname;
const PYTHON = process.env.HUSHCOUNT_PYTHON ?? `${ROOT}.venv/bin/python`;
const CHROMIUM = process.env.HUSHCOUNT_CHROMIUM ?? "/usr/bin/chromium";
const VALUES = ["word-1", "unknown", "é"];
/** What builds `page.js` into a folder, and the page that loads the result. */
const BUNDLERS: Readonly<Record<string, readonly [line: string, html?: string]>> = {
  vite: ["npx vite build --logLevel error --outDir"],
  esbuild: [
    "npx esbuild page.js --bundle --minify --splitting --format=esm --log-level=error --outdir=",
    '<!doctype html><title>a page</title><script type="module" src="/page.js"></script>',
  ],
  webpack: [
    "npx webpack --mode production --stats errors-warnings --entry ./page.js --output-path",
    // It states no charset, so all that is not ASCII in the script is read as other letters.
    '<!doctype html><title>a page</title><script defer src="/main.js"></script>',
  ],
};
const TYPES: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript" };
const README = await readFile(join(PACKAGE, "README.md"), "utf8");
/** What a stranger writes after the install. */
const FIRST_USE = `
  import { Budget, MemoryStore, Newest, type Reported, type Store } from "hushcount";
  import { FileStore } from "hushcount/node";
  const stores: Store[] = [new MemoryStore(), await FileStore.open("person")];
  for (const store of stores) console.log((await new Budget(store, { perDay: 1 }).spent()).epsilon, new Newest(store) !== null);
  const word: Reported = "queued";
  console.log(word);
`;

const missing = [PYTHON, CHROMIUM].filter((path) => !existsSync(path));
if (missing.length > 0) console.warn(`SKIPPED: ${missing.join(" and ")} is missing: NO page was built and opened, and Jest was NOT run`);

const run = promisify(execFile);
let home: string;

/** Run a line of a shell in a folder; return what it prints. */
async function line(folder: string, text: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { stdout } = await run("sh", ["-c", text], { cwd: folder, env: { ...bare(), ...env } }).catch((error: unknown) => {
    const { stdout: out, stderr } = error as { readonly stdout: string; readonly stderr: string };
    throw new Error(`${text}\n${out}\n${stderr}`);
  });
  return stdout;
}

/** The environment of a person's shell, without what npm gives to the script that runs this test. */
function bare(): NodeJS.ProcessEnv {
  const names = Object.keys(process.env).filter((name) => !/^(npm_(?!config_(registry|cache|userconfig)$)|VITEST|NODE_ENV$|NODE_OPTIONS$)/i.test(name));
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

async function folder(name: string): Promise<string> {
  await mkdir(join(home, name));
  return join(home, name);
}

/** A page's files, served from a folder under a strict policy; `loaded` are the bytes of scripts that it loads, gzipped. */
class Served {
  loaded = 0;
  readonly #server: Server;

  constructor(from: string, collector: string) {
    const csp = `default-src 'none'; script-src 'self'; connect-src ${collector}`;
    this.#server = createServer((request, response) => {
      const path = request.url === "/" ? "/index.html" : String(request.url);
      readFile(join(from, path)).then(
        (content) => {
          if (extname(path) === ".js") this.loaded += gzipSync(content, { level: 9 }).length;
          response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "text/plain", "Content-Security-Policy": csp }).end(content);
        },
        () => response.writeHead(404).end(),
      );
    });
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "stranger-"));
  // What a checkout has, and nothing that was built or installed in this one.
  const checkout = await folder("checkout");
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: PACKAGE });
  const files = stdout.split("\0").filter((path) => path !== "" && !path.startsWith("tests/"));
  for (const path of files) await cp(join(PACKAGE, path), join(checkout, path));
});

afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

test("one line installs it from a checkout into an empty app, built, with its types", async () => {
  const app = await folder("empty");
  const [, install = ""] = /```sh\n(npm install path\/to\/\S+)\n```/.exec(README) ?? [];
  await line(app, install.replace("path/to/hushcount/clients/typescript", "../checkout"));
  await writeFile(join(app, "use.mts"), FIRST_USE);
  const compile = "--strict --target es2022 --skipLibCheck false --lib es2023,dom,dom.iterable --outDir";
  const tsc = join(PACKAGE, "node_modules/.bin/tsc");
  await line(app, `${tsc} use.mts ${compile} nodenext --module nodenext && ${tsc} use.mts ${compile} bundled --module esnext --moduleResolution bundler`);
  expect(await line(app, "node nodenext/use.mjs")).toBe("0 true\n0 true\nqueued\n");
});

describe.skipIf(missing.length > 0)("the packed package", () => {
  let app: string;
  let served: ChildProcess;
  let lines: AsyncIterator<string>;
  let site: string;
  let policy: unknown;
  let browser: Browser;
  let reported = 0;
  const table: string[] = [];

  beforeAll(async () => {
    const packed = await folder("packed");
    await rm(join(home, "checkout/dist"), { recursive: true, force: true });
    await line(packed, "npm pack --loglevel=error ../checkout");
    const [tarball = ""] = await readdir(packed);
    app = join(home, "app");
    await cp(APP, app, { recursive: true, filter: (path) => !path.includes("node_modules") });
    await line(app, `npm ci --no-audit --no-fund --loglevel=error && npm install --no-save --no-audit --no-fund --loglevel=error ../packed/${tarball}`);
    const env = { ...process.env, PYTHONPATH: ROOT };
    served = spawn(PYTHON, [`${ROOT}clients/typescript/tests/real/serve.py`], { env, stdio: ["pipe", "pipe", "inherit"] });
    lines = createInterface({ input: served.stdout! })[Symbol.asyncIterator]();
    ({ url: site, policy } = JSON.parse((await lines.next()).value as string) as { url: string; policy: unknown });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  });

  afterAll(async () => {
    await browser?.close();
    served?.stdin?.end();
    console.log(["bundler  version   gzipped  seconds", ...table].join("\n"));
  });

  test.each(Object.entries(BUNDLERS))("is built into a page by %s, which reports", async (name, [build, html]) => {
    const out = `built/${name}`;
    const begun = performance.now();
    await line(app, `${build}${build.endsWith("=") ? "" : " "}${out}`);
    const seconds = (performance.now() - begun) / 1000;
    if (html !== undefined) await writeFile(join(app, out, "index.html"), html);
    const page = await (await browser.newContext()).newPage();
    const faults: string[] = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    const files = new Served(join(app, out), site);
    await page.goto(await files.open());
    const done = await page.evaluate((given) => (globalThis as any).report(given), { site, policy, values: VALUES });
    files.close();
    expect(done).toEqual({ words: VALUES.map(() => "queued"), sent: 2 * VALUES.length, waiting: 0, dropped: {}, sentences: expect.any(Number) });
    expect(done.sentences).toBeGreaterThan(1);
    // A page has no icon here.
    expect(faults.filter((text) => !text.includes("404"))).toEqual([]);
    reported += VALUES.length;
    const { version } = JSON.parse(await readFile(join(app, "node_modules", name, "package.json"), "utf8")) as { version: string };
    table.push(`${name.padEnd(9)}${version.padEnd(10)}${String(files.loaded).padStart(7)}${seconds.toFixed(1).padStart(9)}`);
  });

  test("works under Jest, with a store in memory and with a folder", async () => {
    const env = { SITE: site, POLICY: JSON.stringify(policy), VALUES: JSON.stringify(VALUES), NODE_OPTIONS: "--experimental-vm-modules --no-warnings" };
    const result = JSON.parse(await line(app, "npx jest --json", env)) as { numPassedTests: number; numTotalTests: number };
    expect(result).toMatchObject({ numPassedTests: 2, numTotalTests: 2 });
    reported += 2 * VALUES.length;
  });

  test("runs what the README says of Node, again and again, on one folder", async () => {
    const [script = ""] = [...README.matchAll(/```js\n([^]*?)```/g)].map(([, text = ""]) => text).filter((text) => text.includes("hushcount/node"));
    await writeFile(join(app, "policy.json"), JSON.stringify(policy));
    await writeFile(join(app, "readme.mjs"), script.replace("https://collector.example.com", site));
    await writeFile(join(app, "early.mjs"), script.replace("https://collector.example.com", site).replace("deliver()", "deliver(true)"));
    const [, sent, wait] = /^(\d) sent, (\d) wait\n$/.exec(await line(app, "node readme.mjs")) ?? [];
    expect(Number(sent) + Number(wait)).toBe(2);
    expect(await line(app, "node early.mjs")).toBe(`${String(2 + Number(wait))} sent, 0 wait\n`);
    reported += 2;
  });

  test("brings every report of all of them to the collector, once", async () => {
    served.stdin?.end();
    const stored = JSON.parse((await lines.next()).value as string) as unknown;
    expect(reported).toBe(5 * VALUES.length + 2);
    expect(stored).toEqual({ reports: reported, discovery: reported, clients: 6 });
  });
});
