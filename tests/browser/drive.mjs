// Drives one Chromium for tests/browser/chromium.py: a command a line in, its answer a line out, both JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../clients/typescript/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

const browser = await chromium.launch({ executablePath: process.argv[2], args: FLAGS });
const pages = [];
const posts = [];
const requests = [];
const downloads = [];
const faults = [];

async function open(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
  page.on("request", (request) => requests.push(request.url()));
  page.on("download", (download) => downloads.push(download));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) faults.push(message.text());
  });
  await page.goto(url);
  return pages.push(page) - 1;
}

const COMMANDS = {
  // A person's device: nothing is shared with other devices.
  device: async ({ url, ...options }) => open(await browser.newContext(options), url),
  // Another tab of the same device.
  tab: ({ page, url }) => open(pages[page].context(), url),
  evaluate: async ({ page, code, given }) => {
    // A page that reloads itself loses what runs in it: it is run again in the new one.
    const again = (error) => (/context was destroyed/.test(error) ? run() : Promise.reject(error));
    const run = () => pages[page].evaluate(`(${code})(${JSON.stringify(given ?? null)})`).catch(again);
    return run();
  },
  offline: ({ page, value }) => pages[page].context().setOffline(value),
  // The tab's process ends at once: no event of the page is heard.
  crash: async ({ page }) => {
    const crashed = pages[page].waitForEvent("crash");
    await pages[page].goto("chrome://crash").catch(() => undefined);
    await crashed;
  },
  screenshot: async ({ page, path, full }) => void (await pages[page].screenshot({ path, fullPage: full ?? false })),
  pdf: async ({ page, path }) => void (await pages[page].pdf({ path })),
  media: async ({ page, ...wanted }) => void (await pages[page].emulateMedia(wanted)),
  size: async ({ page, width, height }) => void (await pages[page].setViewportSize({ width, height })),
  // What axe-core finds, with the elements that it finds it in.
  axe: async ({ page }) => {
    await pages[page].evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await pages[page].evaluate(() => globalThis.axe.run());
    return violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes.map(({ html }) => html).slice(0, 3) }));
  },
  press: ({ page, key }) => pages[page].keyboard.press(key),
  // The next file that a page saved: its name, and its content as base64.
  download: async () => {
    while (downloads.length === 0) await new Promise((done) => setTimeout(done, 10));
    const one = downloads.shift();
    return [one.suggestedFilename(), readFileSync(await one.path()).toString("base64")];
  },
  move: ({ page, x, y }) => pages[page].mouse.move(x, y),
  drag: async ({ page, from, to }) => {
    const { mouse } = pages[page];
    await mouse.move(...from);
    await mouse.down();
    await mouse.move(...to, { steps: 4 });
    await mouse.up();
  },
  tap: ({ page, x, y }) => pages[page].touchscreen.tap(x, y),
  type: ({ page, text }) => pages[page].keyboard.type(text),
  click: ({ page, selector }) => pages[page].click(selector),
  requests: () => requests.splice(0),
  posts: () => posts.splice(0),
  faults: () => faults.splice(0),
  // All devices are thrown away: no page of theirs asks for anything any more.
  close: async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    for (const heard of [posts, requests]) heard.length = 0;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  const answer = {};
  try {
    answer.value = (await COMMANDS[command](given)) ?? null;
  } catch (error) {
    answer.error = String(error);
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
