// walk.mjs: the ways of a newcomer, from the first page to a line of code, and what one does with files on the page: verdict to line, line to its callers and
// to the timeline, samples to their stacks, functions to the flame graph, stages of the input to their threads, files added, removed and saved. Run
// by tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, column, failures, launch, numbers, open, params, printed, root, serve, settle, show } from "./browser.mjs";

const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
const sample = path.join(root, "samples/resnet.profile");
const browser = await launch();
const server = await serve([sample]);
const page = await open(browser, server);
await settle(page);

/** A page of its own for some files; closed afterwards. */
async function withFiles(files, options, body) {
  const other = await serve(files, options);
  const tab = await open(browser, other);
  await settle(tab);
  try {
    await body(tab);
    assert.deepEqual(tab.problems, []);
  } finally {
    await tab.context().close();
    await other.stop();
  }
}

await check("Start leads to the guilty line, the line to its callers and to the timeline", async () => {
  await show(page, "#/start");
  await page.click(".ways a:has-text('input.py:14')");
  await page.waitForSelector(".lines .wanted");
  const lines = printed("lines", sample, "--json").rows.filter((row) => row.file.endsWith("/input.py")).sort((a, b) => a.line - b.line);
  const shown = await page.$$eval(".lines .line [data-cost=time]", (cells) => cells.map((c) => Number(c.title.split(" ")[0])));
  assert.deepEqual(shown, lines.map((row) => row.time_ns));
  assert.match(await page.innerText(".lines .wanted"), /matching_files/);
  await page.waitForSelector(".code-page .links li");
  assert.match(await page.innerText(".code-page .links"), /\w+\.py:\d+/);
  await page.click("a:has-text('show in the timeline')");
  await page.waitForSelector("[aria-label='matching names'] td");
  const names = await column(page, "matching names", "name");
  assert.ok(names.includes("input/MatchingFiles"), String(names));
  await page.click("[aria-label='matching names'] tbody tr");
  await page.waitForSelector(".details:not(.waits-facts):not(.waits-others) .stack");
  assert.match(await page.innerText(".details .stack"), /input\.py:14/);
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal((await params(page)).code, undefined);
});

await check("Code: memory at the peak stands beside the time of a line", async () => {
  const file = path.join(scratch, "memory.json");
  const stack = "train.py(7): main;train.py(20): <module>";
  const events = [
    { ph: "X", pid: 1, tid: 1, ts: 0, dur: 100, name: "aten::empty", cat: "cpu_op", args: { "Call stack": stack } },
    { ph: "i", s: "t", pid: 1, tid: 1, ts: 50, name: "[memory]", cat: "cpu_instant_event", args: { "Device Type": 0, "Device Id": -1, Addr: 64, Bytes: 4096, "Total Allocated": 4096 } },
    { ph: "X", pid: 1, tid: 1, ts: 200, dur: 50, name: "aten::mm", cat: "cpu_op", args: { "Call stack": stack } },
    { ph: "i", s: "t", pid: 1, tid: 1, ts: 220, name: "[memory]", cat: "cpu_instant_event", args: { "Device Type": 0, "Device Id": -1, Addr: 64, Bytes: -4096, "Total Allocated": 0 } },
  ];
  writeFileSync(file, JSON.stringify({ schemaVersion: 1, traceEvents: events }));
  const want = printed("memory_peak", file, "--json").rows.find((row) => row.grouped_by === "line");
  assert.equal(want.bytes, 4096);
  await withFiles([file], [], async (tab) => {
    await show(tab, "#/code");
    await tab.waitForSelector("[data-cost=memory][title]");
    assert.deepEqual(await tab.$$eval(".lines [data-cost][title]", (cells) => cells.map((c) => [c.dataset.cost, c.title])), [["time", "150000 ns"], ["memory", "4096 bytes"]]);
  });
});

const perf = path.join(scratch, "work.perf.txt");
writeFileSync(perf, Array.from({ length: 40 }, (_, i) => `prog 7 100.${String(i * 10000).padStart(6, "0")}: 1000 cycles:\n\t    1000 ${i % 4 ? "void busy(int)" : "idle"} (/usr/bin/prog)\n\t    2000 outer (/usr/bin/prog)\n\n`).join(""));

await check("samples: Start leads to the callers, a sample of the timeline has its stack, . goes to the next", async () => {
  await withFiles([perf], [], async (tab) => {
    await tab.click(".ways a:has-text('who calls')");
    await tab.waitForSelector("h2:has-text('busy')");
    assert.match(await tab.innerText(".panel:has(h3) h2"), /30\b|30\.0 k/);
    await show(tab, "#/timeline");
    const at = await tab.evaluate(() => {
      const c = window.opwatchTimeline;
      const line = c.layout.value.lines.find((l) => l.rows[0].kind === "samples");
      const { from, to } = c.range.value;
      return { x: ((15e6 - from) / (to - from)) * c.size.value.width, y: line.y + 8 };
    });
    const box = await (await tab.$(".timeline .body canvas")).boundingBox();
    await tab.mouse.click(box.x + at.x, box.y + at.y);
    await tab.waitForSelector(".details:not(.waits-facts) .stack");
    assert.match(await tab.innerText(".details .stack"), /busy[^]*outer/);
    const first = (await params(tab)).sel;
    assert.match(first, /^s\d+$/);
    await tab.keyboard.press(".");
    await tab.waitForFunction((old) => !location.hash.includes("sel=" + old), first);
    await tab.waitForSelector(".details:not(.waits-facts) .stack");
    await tab.reload();
    await tab.waitForSelector(".details .stack");
    await show(tab, "#/code");
    assert.match(await tab.innerText("main"), /no lines of source code[^]*Flame/);
  });
});

await check("Timeline: a track's label has its share of what is in sight", async () => {
  const file = path.join(scratch, "share.json");
  const events = [{ ph: "X", pid: 1, tid: 1, ts: 0, dur: 1000, name: "all of it" }, { ph: "X", pid: 1, tid: 2, ts: 0, dur: 250, name: "begin" }, { ph: "X", pid: 1, tid: 2, ts: 900, dur: 100, name: "end" }];
  writeFileSync(file, JSON.stringify({ traceEvents: events }));
  await withFiles([file], [], async (tab) => {
    const share = (text) => tab.waitForFunction((want) => [...document.querySelectorAll(".labels .label.track")].some((e) => e.textContent.includes(want)), text);
    await show(tab, "#/timeline");
    await share("35.0 %");
    await show(tab, "#/timeline?t=0-500000");
    await share("50.0 %");
  });
});

await check("Input: a stage opens the timeline with its thread on top", async () => {
  await show(page, "#/input");
  assert.match(await page.innerText(".pipeline .slowest"), /MatchingFiles/);
  const stages = printed("pipeline", sample, "--json");
  assert.deepEqual(numbers(await column(page, "Stages", "self_ns")), stages.rows.map((row) => row.self_ns));
  assert.equal((await page.innerText(".verdict p")).replace(/\s+/g, " "), stages.footer.trim().replace(/\s+/g, " "));
  await page.click(".pipeline .slowest");
  await page.waitForFunction(() => location.hash.includes("pin="));
  await settle(page);
  assert.equal(await page.evaluate(() => window.opwatchTimeline.layout.value.blocks.find((b) => b.pinned)?.title), "cpu:0");
});

await check("Files: a file is added, refused, removed; all is saved as one file", async () => {
  const folder = path.join(scratch, "files");
  mkdirSync(folder);
  const make = (name) => {
    writeFileSync(path.join(folder, name + ".json"), JSON.stringify({ traceEvents: [{ ph: "X", pid: 1, tid: 1, ts: 0, dur: 10, name }] }));
    return path.join(folder, name + ".json");
  };
  const [one] = [make("one"), make("two")];
  writeFileSync(path.join(folder, "three.txt"), "nothing of use\n");
  await withFiles([one], [], async (tab) => {
    await show(tab, "#/files");
    const add = async (name) => {
      if (!(await tab.$("[aria-label='files beside those that are shown']"))) await tab.click("button:has-text('add a file')");
      await tab.click(`[aria-label='files beside those that are shown'] tr:has-text('${name}')`);
    };
    await add("three.txt");
    await tab.waitForSelector(".failure:has-text('three.txt')");
    await add("two.json");
    await tab.waitForSelector(".chosen li:nth-child(2)");
    await settle(tab);
    assert.deepEqual((await column(tab, "Inputs", "path")).map((p) => path.basename(p)).sort(), ["one.json", "two.json"]);
    const [saved] = await Promise.all([tab.waitForEvent("download"), tab.click("button:has-text('save all')")]);
    const file = path.join(scratch, "saved.opw");
    await saved.saveAs(file);
    assert.match(saved.suggestedFilename(), /\.opw$/);
    assert.ok(readFileSync(file).length > 100);
    assert.deepEqual(printed("sources", file, "--json").rows.map((row) => row.events), [1, 1]);
    await tab.click(`button[aria-label='remove ${one}']`);
    await tab.waitForFunction(() => document.querySelector("header h1").textContent === "two.json");
  });
});

await check("the console stays empty", async () => assert.deepEqual(page.problems, []));
await browser.close();
await server.stop();
rmSync(scratch, { recursive: true });
process.exit(failures() ? 1 : 0);
