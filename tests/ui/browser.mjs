// browser.mjs: what the tests and screenshots of the page share: `opwatch ui` as a child process, Debian's chromium by
// playwright-core, and pages that fail on any message in the console. Run by ui_test.py and `make ui-shots`.
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(path.join(root, "build/deps/ui/x.js"));
export const { chromium } = require("playwright-core");
export const opwatch = process.env.OPWATCH ?? path.join(root, "build/release/opwatch");
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Starts `opwatch ui` and returns its address and token. */
export async function serve(files, options = []) {
  const child = spawn(opwatch, ["ui", ...files, "--no-browser", ...options], { stdio: ["ignore", "pipe", "pipe"], cwd: root });
  process.on("exit", () => child.kill("SIGKILL")); // also when a check failed before it stopped its server
  let out = "";
  let err = "";
  child.stderr.on("data", (data) => (err += data));
  await new Promise((done, fail) => {
    child.stdout.on("data", (data) => {
      out += data;
      if (out.includes("\n")) done();
    });
    child.on("exit", (code) => fail(new Error(`opwatch ui ended with ${code}: ${err}`)));
  });
  const line = out.split("\n")[0];
  const [origin, token] = line.split("/#t=");
  return { child, address: line, origin, token, stop: () => new Promise((done) => { child.removeAllListeners("exit"); child.on("exit", done); child.kill("SIGTERM"); }) };
}

export async function launch() {
  if (!CHROMIUM) throw new Error("chromium is not installed");
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}

/** A tab that collects what must not happen. */
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 1000 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.problems = [];
  page.pending = new Set();
  page.on("request", (request) => {
    // A new document: the answers to the one before are dropped, and the browser may never report how they ended.
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) page.pending.clear();
    else if (!/\/api\/(state|jobs|again|freeze|cancel|choose)/.test(request.url())) page.pending.add(request);
  });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => page.pending.delete(request));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(String(error)));
  if (server) {
    await page.goto(server.address);
    await page.waitForSelector("nav a.on", { timeout: PATIENCE });
  }
  return page;
}

/** What never happens is given up after this long; a busy machine may need most of it. */
export const PATIENCE = 60000;

/** The page has drawn and run what it wanted to run after that (Preact's effects), three times over: an answer may lead to a request, and that to another. What
 * it asked for by then is known here, because the messages of the browser come in order. */
const drawn = (page) =>
  page
    .evaluate(async () => {
      for (let i = 0; i < 3; i++) await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      return document.querySelector(".waiting") === null;
    })
    .catch(() => false); // it goes to another page just now

/** Waits until every answer is there, but for those that the page asks for again and again or does not read, and until it is drawn; then a little longer. */
export async function settle(page, ms = 0) {
  for (let quiet = 0, end = Date.now() + PATIENCE; quiet < 2 && Date.now() < end; ) {
    const done = await drawn(page);
    quiet = done && !page.pending.size ? quiet + 1 : 0;
    if (!quiet) await page.waitForTimeout(20);
  }
  if (ms) await page.waitForTimeout(ms);
}

/** Runs a check, prints one line, counts failures. */
let failed = 0;
export const failures = () => failed;
export async function check(name, body) {
  const begin = Date.now();
  try {
    await body();
    console.log(`ok   ${name} (${Date.now() - begin} ms)`);
  } catch (e) {
    failed++;
    console.log(`FAIL ${name}: ${e.stack}`);
  }
}

/** What a command prints with --json. */
export const printed = (...args) => JSON.parse(execFileSync(opwatch, args, { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString());

/** The exact values in the column of a table, from the tooltips of its cells. */
export const column = (page, table, name) => page.$$eval(`[aria-label='${table}'] td[data-column='${name}']`, (cells) => cells.map((c) => c.getAttribute("title")));
export const numbers = (texts) => texts.map((text) => (text === "not known" ? null : Number(text.split(" ")[0])));
export const show = async (page, hash) => {
  await page.evaluate((to) => (location.hash = to), hash);
  await settle(page);
};
export const params = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")));
