// Measures reports in Chromium, or with --node in Node: `npm run bench`. Not a test, because times depend on the machine.
import { build } from "esbuild";

const PAGE = `
import { Client, MemoryStore, Policy } from "./dist/index.js";
import { buildMechanism } from "./dist/testing.js";

const seed = "5eed".repeat(16);
const words = (count) => crypto.getRandomValues(new Uint32Array(2 * count));
const CASES = [
  ["grr", {}, 20],
  ["ss", { s: 27 }, 100],
  ["oue", {}, 1000],
  ["gcms", { k: 2 ** 18, m: 1024, s: 270, seed }, undefined],
  ["hcms", { k: 65536, m: 1024, seed }, undefined],
  ["olh", { B: 4 }, undefined],
  ["ais", { s: 27 }, 101],
];
const median = (times) => times.sort((one, other) => one - other)[times.length >> 1];

globalThis.bench = async (campaign) => {
  const lines = [];
  for (const [name, parameters, domain] of CASES) {
    const begun = performance.now();
    const mechanism = buildMechanism({ name, epsilon: 1, parameters }, domain, []);
    const built = performance.now() - begun;
    const times = [];
    for (let round = 0; round < 200; round += 1) {
      const start = performance.now();
      for (let report = 0; report < 10; report += 1) mechanism.report(3n, words);
      times.push((performance.now() - start) / 10);
    }
    lines.push(name + ": built in " + built.toFixed(2) + " ms, a report before sealing " + median(times).toFixed(3) + " ms");
  }
  const bytes = new TextEncoder().encode(JSON.stringify(campaign));
  const client = await Client.open({ campaign: bytes, policy: Policy.trusting(), store: new MemoryStore() });
  for (const [name, make] of [["report", () => client.report("a")], ["discovery report", () => client.discoveryReport("a")]]) {
    const times = [];
    for (let round = 0; round < 300; round += 1) {
      const start = performance.now();
      await make();
      times.push(performance.now() - start);
    }
    lines.push("a client's sealed " + name + ": " + median(times).toFixed(3) + " ms");
  }
  return lines;
};
`;

const { outputFiles } = await build({
  stdin: { contents: PAGE, resolveDir: "." },
  bundle: true,
  format: "esm",
  target: "es2022",
  write: false,
});
const { readFileSync } = await import("node:fs");
const { accept } = JSON.parse(readFileSync("../../vectors/v1/campaigns.json", "utf8"));
const campaign = accept.find(({ name }) => name === "open-domain").file;
campaign.shuffle.cap = 1000;

if (process.argv.includes("--node")) {
  await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
  for (const line of await globalThis.bench(campaign)) console.log(line);
} else {
  const { createServer } = await import("node:http");
  const { chromium } = await import("playwright-core");
  // A page of localhost is a secure context, so it has WebCrypto.
  const server = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html>"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const executablePath = process.env.HUSHCOUNT_CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.addScriptTag({ content: outputFiles[0].text, type: "module" });
  await page.waitForFunction(() => globalThis.bench);
  for (const line of await page.evaluate((file) => globalThis.bench(file), campaign)) console.log(line);
  await browser.close();
  server.close();
}
