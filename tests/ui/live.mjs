// live.mjs: files and jobs that change while the page is open: a recording that grows, a job of the daemon, a file that is replaced, cut or
// deleted, a daemon that is killed and comes back, a server that is killed. The page follows, or says so within two seconds. Run by
// tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { PATIENCE, check, failures, launch, open, opwatch, serve, settle, show } from "./browser.mjs";

const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
const browser = await launch();
process.setMaxListeners(100); // one per child
const children = [];
/** Two seconds, and half of one for the measurement; on a machine with more to do than processors a clock says nothing. */
const quick = () => (os.loadavg()[0] > os.cpus().length ? PATIENCE : 2500);

/** A program that opens a file again and again, which the recorder sees, until it is killed. */
const WORK = "import os, time\nend = time.time() + 120\nwhile time.time() < end:\n    with open('/etc/hostname') as f: f.read()\n    time.sleep(0.01)\n";
const program = path.join(scratch, "work.py");
writeFileSync(program, WORK);

function start(...args) {
  const child = spawn(opwatch, args, { stdio: ["ignore", "ignore", "pipe"], cwd: scratch, detached: true });
  child.errors = "";
  child.stderr.on("data", (data) => (child.errors += data));
  child.stop = (signal = "SIGTERM") => {
    try {
      process.kill(-child.pid, signal);
    } catch {
      /* it ended */
    }
  };
  children.push(child);
  process.on("exit", () => child.stop("SIGKILL"));
  return child;
}
async function until(what, test, ms = PATIENCE) {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) if (await test()) return;
  throw new Error("waited in vain for: " + what + "\n" + children.map((c) => c.errors).join(""));
}
const span = (page) => page.evaluate(() => window.opwatchTimeline?.store.rows.span_ns ?? 0);
const trace = (n) => JSON.stringify({ traceEvents: Array.from({ length: n }, (_, i) => ({ ph: "X", pid: 1, tid: 1, ts: i * 10, dur: 8, name: "op " + (i % 3) })) });

/** Waits until the page says something that matches; returns how long that took, in ms. The page asks for the state once a second: what it must say within
 * two seconds it says after the second question that began after the event, or, where the server needs a look of its own first, after the third. */
async function says(page, pattern, questions = 3) {
  const begin = Date.now();
  let asked = 0;
  const count = (request) => request.url().includes("/api/state") && asked++;
  page.on("request", count);
  await page.waitForFunction((source) => new RegExp(source).test(document.querySelector(".gone")?.textContent ?? ""), pattern.source, { polling: 50 });
  page.off("request", count);
  const took = Date.now() - begin;
  assert.ok(asked <= questions && took < quick(), `${pattern} after ${asked} questions, ${took} ms`);
  return took;
}

/** Waits until a value does not change for a while, and returns it: what was under way when it was stopped may still arrive. */
async function stays(what, read) {
  let value = await read();
  let since = Date.now();
  await until(what + " stays as it is", async () => {
    const now = await read();
    if (now !== value) [value, since] = [now, Date.now()];
    return Date.now() - since > 2500;
  });
  return value;
}

await check("a recording that grows: the timeline goes on, and stops when it is frozen", async () => {
  const file = path.join(scratch, "run.opw");
  const job = start("record", "-o", file, "--", "/usr/bin/python3", program);
  await until("a recording", () => existsSync(file) && statSync(file).size > 4096);
  const server = await serve([file]);
  const page = await open(browser, server);
  await show(page, "#/timeline");
  await page.waitForFunction(() => window.opwatchTimeline !== undefined);
  const first = await span(page);
  await until("more", async () => (await span(page)) > first);
  await until("the end in sight", () => page.evaluate(() => window.opwatchTimeline.range.value.to >= window.opwatchTimeline.store.rows.span_ns));
  await page.click("header button:has-text('freeze')");
  await page.waitForSelector("header button:has-text('go on')");
  const size = statSync(file).size;
  const frozen = await stays("the frozen timeline", () => span(page));
  await until("the recording grows", () => statSync(file).size > size);
  assert.equal(await span(page), frozen);
  await page.click("header button:has-text('go on')");
  await until("more again", async () => (await span(page)) > frozen);
  assert.deepEqual(page.problems, []);
  job.stop();
  await page.context().close();
  await server.stop();
});

await check("a file that is replaced, cut or deleted: the page says so within two seconds and reads it again when asked", async () => {
  const file = path.join(scratch, "trace.json");
  writeFileSync(file, trace(300));
  const server = await serve([file]);
  const page = await open(browser, server);
  await settle(page);
  writeFileSync(file + ".new", trace(600));
  renameSync(file + ".new", file);
  const times = [await says(page, /was replaced/)];
  await page.click(".gone button");
  await page.waitForSelector(".gone", { state: "detached" });
  await show(page, "#/files");
  await until("the new events", async () => (await page.innerText("[aria-label=Inputs]")).includes("600"));
  truncateSync(file, 2000);
  times.push(await says(page, /was cut/));
  unlinkSync(file);
  times.push(await says(page, /was deleted/));
  console.log("     said after " + times.join(", ") + " ms");
  await page.context().close();
  await server.stop();
});

await check("an own file that is cut while it is open: views answer with an error, the page stays", async () => {
  const source = path.join(scratch, "source.json");
  const file = path.join(scratch, "own.opw");
  writeFileSync(source, trace(200000));
  await new Promise((done) => spawn(opwatch, ["convert", source, "-o", file], { stdio: "ignore" }).on("exit", done));
  const server = await serve([file]);
  const page = await open(browser, server);
  await settle(page);
  truncateSync(file, 8192);
  await says(page, /was cut/);
  for (const hash of ["#/ops", "#/timeline", "#/files", "#/start"]) await show(page, hash);
  const alive = await page.evaluate(async () => (await fetch("/api/state", { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } })).status);
  assert.equal(alive, 200);
  await page.context().close();
  await server.stop();
});

await check("a job of the daemon: jobs, its timeline, the daemon killed and started again", async () => {
  const socket = path.join(scratch, "daemon.sock");
  const options = ["daemon", "--socket", socket, "--dir", path.join(scratch, "rings"), "--no-kineto"];
  let daemon = start(...options);
  await until("the daemon", () => existsSync(socket));
  const job = start("record", "--job", "work", "--socket", socket, "--", "/usr/bin/python3", program);
  const jobs = await serve([], ["--daemon-socket", socket]);
  const list = await open(browser, jobs);
  await list.waitForSelector("[aria-label=jobs] td");
  assert.match(await list.innerText("[aria-label=jobs]"), /work/);
  const records = () => list.innerText("main .fact:has-text('records')");
  const before = await records();
  await until("records of the job", async () => (await records()) !== before);
  const server = await serve([], ["--job", "work", "--last", "30s", "--daemon-socket", socket]);
  const page = await open(browser, server);
  await show(page, "#/timeline");
  await page.waitForFunction(() => window.opwatchTimeline !== undefined);
  assert.match(await page.innerText("header"), /live/);
  const first = await span(page);
  await until("more of the job", async () => (await span(page)) > first);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("header button:has-text('keep this')")]);
  const kept = path.join(scratch, "kept.opw");
  await download.saveAs(kept);
  assert.ok(statSync(kept).size > 1000);
  // What the daemon saved around an anomaly opens in a page of its own; the last minute, too, and it goes on.
  const saved = path.join(scratch, "rings", "work-1-slow-120304.opw");
  copyFileSync(kept, saved);
  writeFileSync(saved.replace(/opw$/, "why.txt"), "steps take 50 % longer since 12:03:04\n");
  await list.waitForSelector("[aria-label=anomalies] td");
  assert.match(await list.innerText("[aria-label=anomalies]"), /work[^]*slow[^]*50 % longer/);
  const opened = async (act) => {
    const [other] = await Promise.all([list.context().waitForEvent("page"), act()]);
    await other.waitForSelector("nav a.on");
    return other;
  };
  await list.focus("[aria-label=anomalies]");
  await list.keyboard.press("ArrowDown");
  const minute = await opened(() => list.keyboard.press("Enter"));
  assert.match(await minute.innerText("header h1"), /work-1-slow-120304\.opw/);
  assert.ok(!minute.url().includes("#t="));
  await minute.close();
  const last = await opened(() => list.click("button:has-text('timeline of the last 60 s')"));
  assert.match(await last.innerText("header"), /live/);
  await last.close();
  const [another] = await Promise.all([list.waitForEvent("download"), list.click("button:has-text('keep the last 60 s')")]);
  await another.saveAs(kept + "2");
  assert.ok(statSync(kept + "2").size > 1000);
  await list.click("button:has-text('freeze')");
  await list.waitForSelector("button:has-text('go on')");
  const still = await stays("the frozen list", records);
  await list.click("button:has-text('go on')");
  await until("the list goes on", async () => (await records()) !== still);
  daemon.stop("SIGKILL");
  const after = await says(page, /no longer updated/);
  console.log(`     said after ${after} ms`);
  await list.waitForFunction(() => /daemon/.test(document.querySelector("main")?.textContent ?? ""));
  daemon = start(...options);
  await page.waitForSelector(".gone", { state: "detached" });
  job.stop();
  daemon.stop();
  for (const tab of [list, page]) await tab.context().close();
  await jobs.stop();
  await server.stop();
});

await check("a server that is killed: the page says so within two seconds", async () => {
  const file = path.join(scratch, "small.json");
  writeFileSync(file, trace(10));
  const server = await serve([file]);
  const page = await open(browser, server);
  await settle(page);
  server.child.removeAllListeners("exit");
  server.child.kill("SIGKILL");
  await says(page, /does not answer/, 2);
  await page.context().close();
});

for (const child of children) child.stop("SIGKILL");
await browser.close();
rmSync(scratch, { recursive: true, force: true });
process.exit(failures() ? 1 : 0);
