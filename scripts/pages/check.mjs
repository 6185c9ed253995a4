// Checks pages in a browser and reports the faults of each. Run by scripts/pages/check.

import { readFileSync, mkdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.PAGES_NODE, "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const MAX_BYTES = 2e6;
const MAX_PAINT_MS = 1000;
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const SCREENS = [
  { name: "phone", width: 360, height: 740, scheme: "light" },
  { name: "phone-dark", width: 360, height: 740, scheme: "dark" },
  { name: "desk", width: 1280, height: 900, scheme: "light" },
  { name: "desk-dark", width: 1280, height: 900, scheme: "dark" },
];

const { values, positionals } = parseArgs({ options: { pictures: { type: "string" } }, allowPositionals: true });
if (positionals.length === 0) {
  console.error("usage: scripts/pages/check [--pictures DIR] PAGE.html...");
  process.exit(2);
}
if (values.pictures) mkdirSync(values.pictures, { recursive: true });

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // Chromium has no sandbox for root. A page of results contains no script.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
let failed = 0;
for (const page of positionals) failed += (await check(page)) ? 0 : 1;
await browser.close();
console.log(`${positionals.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

// Prints a page's measurements and faults, and returns whether it has no fault.
async function check(path) {
  const faults = [];
  const bytes = statSync(path).size;
  if (bytes > MAX_BYTES) faults.push(`${bytes} bytes, at most ${MAX_BYTES}`);
  const paint = await firstPaint(path, faults);
  if (!(paint < MAX_PAINT_MS)) faults.push(`first paint after ${paint} ms, at most ${MAX_PAINT_MS}`);
  let rules = 0;
  for (const screen of SCREENS) rules = Math.max(rules, await look(path, screen, faults));
  await print(path, faults);
  const verdict = faults.length === 0 ? "ok" : "FAULTS";
  console.log(`${path}: ${verdict}; ${bytes} bytes, first paint ${paint.toFixed(0)} ms, ${rules} rules of axe passed`);
  for (const fault of faults) console.log(`  ${fault}`);
  return faults.length === 0;
}

// Opens the page under its own content policy, records console messages and requests as faults, and returns the time of the first paint.
async function firstPaint(path, faults) {
  const page = await browser.newPage();
  page.on("console", (message) => faults.push(`console, ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!request.isNavigationRequest() && !url.startsWith("data:")) faults.push(`request: ${url}`);
  });
  await page.goto(pathToFileURL(resolve(path)).href, { waitUntil: "load" });
  const paint = await page.evaluate(
    () =>
      new Promise((found) => {
        const entry = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
        const wait = (tries) => (entry() || tries === 0 ? found(entry() ?? Infinity) : setTimeout(wait, 50, tries - 1));
        wait(60);
      }),
  );
  await page.close();
  return paint;
}

// Checks the page on one screen with everything unfolded, and returns the number of axe rules that it passed.
async function look(path, screen, faults) {
  const page = await browser.newPage();
  await page.setViewport({ width: screen.width, height: screen.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: screen.scheme }]);
  await page.goto(pathToFileURL(resolve(path)).href, { waitUntil: "load" });
  if (values.pictures) {
    const name = `${basename(dirname(resolve(path, "..")))}-${screen.name}.png`;
    await page.screenshot({ path: resolve(values.pictures, name), fullPage: true });
  }
  const width = await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    return document.documentElement.scrollWidth;
  });
  if (width > screen.width) faults.push(`${screen.name}: ${width} pixels wide`);
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => window.axe.run({ runOnly: tags }), RULES);
  for (const rule of found.violations) {
    for (const node of rule.nodes.slice(0, 3)) {
      faults.push(`${screen.name}: ${rule.id} (${rule.impact}): ${rule.help}: ${node.html.slice(0, 160)}`);
    }
  }
  await page.close();
  return found.passes.length;
}

// Prints the page and checks that parts folded on the screen appear on paper.
async function print(path, faults) {
  const page = await browser.newPage();
  await page.goto(pathToFileURL(resolve(path)).href, { waitUntil: "load" });
  await page.emulateMediaType("print");
  const hidden = await page.evaluate(
    () => [...document.querySelectorAll("details > :not(summary)")].filter((part) => !part.checkVisibility()).length,
  );
  if (hidden > 0) faults.push(`print: ${hidden} folded parts are missing`);
  if (values.pictures) {
    const name = `${basename(dirname(resolve(path, "..")))}-print.pdf`;
    await page.pdf({ path: resolve(values.pictures, name), format: "A4" });
  }
  await page.close();
}
