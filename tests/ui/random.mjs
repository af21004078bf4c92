// random.mjs: clicks, types, scrolls, zooms, goes back and reloads at random, OPWATCH_UI_SECONDS long (40; nightly: 600), with a fixed seed
// (OPWATCH_UI_SEED). The console stays empty, the page stays as wide as the window, the server lives, and the memory of the browser stays below 350 MB and does
// not grow in the last part. Run by tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, failures, launch, open, printed, root, serve, settle } from "./browser.mjs";

const seconds = Number(process.env.OPWATCH_UI_SECONDS ?? 40);
let state = Number(process.env.OPWATCH_UI_SEED ?? 20261117);
/** mulberry32 */
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const pick = (list) => list[Math.floor(random() * list.length)];

/** Bytes that the processes of the pages and the one that draws have for themselves, shared ones by part. The browser's own surface (the list below its
 * address bar is a page, too) is not counted: it has the same size whatever the page does. */
function memory(pid) {
  const parents = new Map();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      parents.set(Number(name), Number(/\) \S+ (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "latin1"))[1]));
    } catch {
      /* it ended */
    }
  }
  const below = (one) => one === pid || (parents.has(one) && parents.get(one) > 1 && below(parents.get(one)));
  let sum = 0;
  for (const one of parents.keys()) {
    try {
      const words = readFileSync(`/proc/${one}/cmdline`, "latin1");
      if (!below(one) || !/--type=(renderer|gpu-process)/.test(words) || words.includes("--top-chrome-webui")) continue;
      sum += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${one}/smaps_rollup`, "latin1"))[1]) * 1024;
    } catch {
      /* it ended */
    }
  }
  return sum;
}
const MB = (bytes) => Math.round(bytes / 1e6);

/** What is left when the browser has collected unused memory. It does so at times of its own and gives it back in steps, so the lowest of several
 * measurements is what it needs; one at any moment says little. */
async function settled(tab) {
  const session = await tab.context().newCDPSession(tab);
  let least = Infinity;
  for (let i = 0; i < 6; i++) {
    await session.send("HeapProfiler.collectGarbage");
    await tab.waitForTimeout(500);
    least = Math.min(least, memory(process.pid));
  }
  await session.detach();
  return least;
}

let hasSql = true;
try {
  printed("sql", path.join(root, "samples/resnet.profile"), "SELECT 1 AS one", "--json");
} catch {
  hasSql = false; // an optional part: pages say that it is missing
}
const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
const ranks = execFileSync("/usr/bin/python3", [path.join(root, "tests/ui/make_ranks.py"), scratch]).toString().trim().split("\n");
const browser = await launch();
const server = await serve(ranks, ["--base", ranks[0], "--daemon-socket", path.join(scratch, "none")]);
const blank = await open(browser);
const fixed = await settled(blank); // what the browser takes for an empty page
await blank.context().close();
const page = await open(browser, server);
const KEYS = ["w", "s", "a", "d", "f", "0", ".", ",", "m", "e", "[", "]", "/", "Escape", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "PageDown", "PageUp", "Enter", "Tab", "+", "-", "Home", "End"];

/** One of the elements at random, or null. A locator, not a handle: handles keep elements alive that the page has removed. */
async function element(selector) {
  const all = page.locator(selector);
  const count = await all.count();
  return count ? all.nth(Math.floor(random() * count)) : null;
}

const actions = {
  page: async () => (await element("nav a[href^='#/']"))?.click({ timeout: 2000 }),
  button: async () => (await element("main button, main th button, main tr.opens, main summary"))?.click({ timeout: 500, force: true }),
  choose: async () => {
    const one = await element("main select, main input[type=checkbox]");
    if (!one) return;
    if ((await one.evaluate((e) => e.tagName, undefined, { timeout: 500 })) === "INPUT") return one.click({ timeout: 500, force: true });
    const values = await one.locator("option").evaluateAll((options) => options.map((o) => o.value));
    if (values.length) await one.selectOption(pick(values), { timeout: 500 });
  },
  type: async () => (await element("main input[type=search], main input[type=text]"))?.fill(pick(["aten", "^gemm", "(", "", "[", "nccl.*", "ä<b>", "0"]), { timeout: 500 }),
  key: async () => page.keyboard.press(pick(KEYS)),
  click: async () => page.mouse.click(130 + random() * 1400, 50 + random() * 900),
  move: async () => page.mouse.move(130 + random() * 1400, 50 + random() * 900),
  wheel: async () => page.mouse.wheel(0, (random() - 0.5) * 1500),
  zoom: async () => {
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, (random() - 0.5) * 800);
    await page.keyboard.up("Control");
  },
  drag: async () => {
    if (random() < 0.4) await page.keyboard.down("Shift");
    await page.mouse.down();
    await page.mouse.move(130 + random() * 1400, 50 + random() * 900, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
  },
  palette: async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(pick(["flame", "time", "mem", "zzz"]));
    await page.keyboard.press(pick(["Enter", "Escape"]));
    await page.keyboard.press("Escape");
  },
  back: async () => page.url().includes("#/") && page.evaluate(() => history.length > 3 && history.back()),
  forward: async () => page.evaluate(() => history.forward()),
  reload: async () => random() < 0.2 && page.reload(),
};
const names = Object.keys(actions);
const done = [];
const sizes = [];

await check(`${seconds} seconds of random use`, async () => {
  const end = Date.now() + seconds * 1000;
  let measured = 0;
  while (Date.now() < end) {
    const name = pick(names);
    done.push(name);
    await actions[name]().catch((e) => {
      if (!/Timeout|not attached|detached|not visible|outside of the viewport|intercepts|Execution context|navigat|not a <select>|did not find some options|not an <input>/i.test(e.message)) throw e;
    });
    await page.waitForTimeout(20);
    if (Date.now() - measured > 5000) {
      measured = Date.now();
      sizes.push(memory(process.pid));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth).catch(() => 0);
      assert.ok(wide <= 0, `wider than the window by ${wide} at ${page.url()} after ${done.slice(-10)}`);
      if (!page.url().startsWith(server.origin)) await page.goto(server.address); // Back went too far
    }
    // Refused requests are noted by the browser (a regular expression that is none, SQL with a mistake); anything else is a fault of the page.
    const problems = page.problems.filter((text) => !/status of 4(00|04|13)|ERR_ABORTED|willReadFrequently/.test(text) && (hasSql || !text.includes("status of 501")));
    assert.deepEqual(problems, [], `at ${page.url()} after ${done.slice(-10)}`);
  }
  console.log(`     ${done.length} actions; memory of the browser in MB: ${sizes.map(MB).join(" ")}`);
});

await check("the page still works, and the browser has not grown", async () => {
  await page.goto(server.address);
  await page.waitForSelector("nav a.on");
  await page.evaluate(() => (location.hash = "#/ops"));
  await page.waitForSelector("[aria-label=Operations] td");
  await settle(page);
  const late = sizes.slice(-Math.ceil(sizes.length / 4));
  const middle = sizes.slice(Math.floor(sizes.length / 2), Math.floor((3 * sizes.length) / 4));
  assert.ok(sizes.every((n) => n > 0), String(sizes));
  const left = await settled(page);
  console.log(`     ${MB(left)} MB at the end, of which an empty page takes ${MB(fixed)} MB`);
  assert.ok(left < 350e6, `${MB(left)} MB at the end, an empty page ${MB(fixed)} MB, while in use ${sizes.map(MB)}`);
  if (seconds >= 300) assert.ok(Math.min(...late) < 1.1 * Math.max(...middle), `MB: ${middle.map((n) => n / 1e6)} then ${late.map((n) => n / 1e6)}`);
});

await browser.close();
await server.stop();
rmSync(scratch, { recursive: true, force: true });
process.exit(failures() ? 1 : 0);
