// pages.mjs FILE…: every page in a real browser: it opens without a message in the console, its numbers are those of the
// commands, reload shows the same, Back goes back, the keys work, and names with markup stay text. Run by
// tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, column, failures, launch, numbers, open, opwatch, params, printed, root, serve, settle, show } from "./browser.mjs";

const sample = path.join(root, "samples/resnet.profile");
const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
let hasSql = true;
try {
  printed("sql", sample, "SELECT 1 AS one", "--json");
} catch {
  hasSql = false; // an optional part
}
const browser = await launch();

const server = await serve([sample]);
const page = await open(browser, server);
await settle(page);

// Every request of this tab whose address or headers hold the token, but for the one header that is there for it.
const leaks = [];
page.on("request", (request) => {
  const headers = Object.entries(request.headers()).filter(([name]) => name !== "x-opwatch-token");
  if (JSON.stringify([request.isNavigationRequest() ? "" : request.url(), headers]).includes(server.token)) leaks.push(request.url());
  if (headers.some(([name, value]) => name === "referer" && value)) leaks.push("referer: " + request.url());
});

await check("the token leaves the address bar", async () => {
  assert.ok(!page.url().includes(server.token));
  await page.reload();
  await page.waitForSelector("nav a.on");
});

await check("every page opens and says something", async () => {
  const links = await page.$$eval("nav a[href^='#/']:not(.logo)", (all) => all.map((a) => a.getAttribute("href")));
  assert.ok(links.length >= 10, String(links));
  for (const link of links) {
    await page.click(`nav a[href='${link}']:not(.logo)`);
    await settle(page, 50);
    const text = await page.innerText("main");
    assert.ok(text.trim().length > 20, link + ": " + text);
    assert.equal(await page.$$eval("main .failure", (all) => all.length), 0, link);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, link + ": wider than the window by " + wide);
  }
});

await check("Start: numbers of verdict, work, lines, devices", async () => {
  await show(page, "#/start");
  assert.equal(await page.innerText(".verdict p"), printed("verdict", sample, "--json").rows[0].verdict);
  const work = printed("work", sample, "--json").rows;
  const shown = numbers(await column(page, "Operations by time", "time_ns"));
  assert.deepEqual(shown, work.map((row) => row.time_ns).slice(0, shown.length));
  assert.ok(shown.length >= 10);
  const lines = printed("lines", sample, "--json").rows;
  assert.deepEqual(numbers(await column(page, "Lines of code", "time_ns")).slice(0, 6), lines.map((row) => row.time_ns).slice(0, 6));
  assert.deepEqual(numbers(await column(page, "Devices", "busy_ns")), printed("devices", sample, "--json").rows.map((row) => row.busy_ns));
});

await check("Ops: the table of each view, sort, filter, reload", async () => {
  for (const [view, key, args] of [["work", "time_ns", []], ["opstats", "self_ns", []], ["op", "micros", ["--select", "micros,occurrence", "--order-by", "micros", "--max-depth", "1000000"]]]) {
    await show(page, "#/ops?view=" + view);
    const rows = printed(view, sample, "--json", ...args).rows.filter((row) => row.name !== "_TFProfRoot");
    const shown = numbers(await column(page, "Operations", key));
    assert.deepEqual(shown, rows.map((row) => row[key]).slice(0, shown.length), view);
  }
  await show(page, "#/ops");
  await page.click("[aria-label=Operations] th:has-text('name') button");
  await settle(page);
  const names = await column(page, "Operations", "name");
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })));
  await page.fill("input.filter", "^Conv2D");
  await settle(page);
  const before = await column(page, "Operations", "name");
  assert.deepEqual(before, ["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"]);
  const url = page.url();
  await page.reload();
  await page.waitForSelector("[aria-label=Operations] td");
  assert.equal(page.url(), url);
  assert.deepEqual(await column(page, "Operations", "name"), before);
});

await check("Timeline: keys, selection, details, Back, reload", async () => {
  await show(page, "#/timeline");
  const canvas = await page.$(".timeline .body canvas");
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 30);
  const span = () => page.evaluate(() => { const r = window.opwatchTimeline.range.value; return [r.from, r.to]; });
  const width = async () => { const [from, to] = await span(); return to - from; };
  const whole = await width();
  await page.keyboard.down("w");
  await page.waitForTimeout(300);
  await page.keyboard.up("w");
  const zoomed = await width();
  assert.ok(zoomed < whole * 0.9, `${zoomed} of ${whole}`);
  const [left] = await span();
  await page.keyboard.press("d");
  await page.waitForFunction((before) => window.opwatchTimeline.range.value.from > before, left);
  await page.keyboard.press("a");
  await page.waitForFunction(() => /[?&]t=/.test(location.hash)); // the move becomes part of the history
  await page.keyboard.press("0");
  assert.ok(Math.abs((await width()) - whole) < whole * 0.001);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.waitForFunction((before) => { const r = window.opwatchTimeline.range.value; return r.to - r.from < before; }, whole * 0.99);
  await page.keyboard.up("Control");
  await page.keyboard.press("0");
  // Search, Enter selects the longest match.
  await page.keyboard.press("/");
  await page.keyboard.type("^input/MatchingFiles$");
  await page.waitForFunction(() => window.opwatchTimeline.found.value?.names === 1);
  await settle(page);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".details");
  assert.equal(await page.innerText(".details h2"), "input/MatchingFiles");
  assert.match(await page.innerText(".details .stack"), /input\.py:14/);
  assert.match(await page.innerText(".details .facts"), /163 ms/);
  const selected = (await params(page)).sel;
  await page.keyboard.press("f");
  await settle(page);
  assert.ok((await width()) < 163e6 * 3);
  await page.keyboard.press("m");
  await settle(page);
  const marked = (await params(page)).m;
  assert.equal(Number(marked.split("-")[1]) - Number(marked.split("-")[0]), 162872000);
  await page.keyboard.press(",");
  await settle(page);
  assert.notEqual((await params(page)).sel, selected);
  await page.keyboard.press(".");
  await settle(page);
  assert.equal((await params(page)).sel, selected);
  const url = page.url();
  const range = await span();
  await page.reload();
  await page.waitForSelector(".details");
  await settle(page);
  assert.equal(page.url(), url);
  assert.deepEqual((await span()).map(Math.round), range.map(Math.round));
  let back = 0;
  for (; back < 6 && (await params(page)).sel === selected; back++) {
    await page.goBack();
    await settle(page);
  }
  assert.notEqual((await params(page)).sel, selected);
  for (; back > 0; back--) await page.goForward();
  await settle(page);
  assert.equal((await params(page)).sel, selected);
});

await check("Timeline: a click selects what is under the pointer", async () => {
  await show(page, "#/timeline");
  const box = await (await page.$(".timeline .body canvas")).boundingBox();
  const at = await page.evaluate(() => {
    const c = window.opwatchTimeline;
    const line = c.layout.value.lines.find((l) => l.rows[0].track === 2 && l.rows[0].lane === 0);
    const { from, to } = c.range.value;
    return { x: ((50e6 - from) / (to - from)) * c.size.value.width, y: line.y + 8 };
  });
  await page.mouse.click(box.x + at.x, box.y + at.y);
  await page.waitForSelector(".details");
  assert.equal(await page.innerText(".details h2"), "input/MatchingFiles");
});

await check("Timeline: an area has the sums of its events", async () => {
  if (!hasSql) return;
  await show(page, "#/timeline");
  const box = await (await page.$(".timeline .body canvas")).boundingBox();
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 20, box.y + 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 110, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.waitForSelector("[aria-label='what is in the area'] td");
  const [, from, to, tracks] = /^(\d+)-(\d+):(.*)$/.exec((await params(page)).area);
  const ids = tracks.split(",").map((key) => key.slice(1)).join(",");
  const want = printed("sql", sample, `SELECT name, sum(least(ts + dur, z + ${to}) - greatest(ts, z + ${from})) AS t FROM event, (SELECT min(ts) AS z FROM event) WHERE track_id IN (${ids}) AND ts < z + ${to} AND ts + dur > z + ${from} GROUP BY name ORDER BY t DESC, name`, "--json").rows;
  const shown = numbers(await column(page, "what is in the area", "time_ns"));
  assert.deepEqual(shown, want.map((row) => row.t).slice(0, shown.length));
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal((await params(page)).area, undefined);
});

await check("Timeline: two overlapping slices of one track are both visible", async () => {
  const file = path.join(scratch, "overlap.json");
  const events = [{ ph: "X", pid: 1, tid: 7, ts: 0, dur: 100, name: "first kernel", cat: "kernel" }, { ph: "X", pid: 1, tid: 7, ts: 50, dur: 100, name: "second kernel", cat: "kernel" }];
  writeFileSync(file, JSON.stringify({ traceEvents: events }));
  const other = await serve([file]);
  const tab = await open(browser, other);
  await show(tab, "#/timeline");
  const rows = await tab.evaluate(() => window.opwatchTimeline.layout.value.lines.map((l) => l.rows[0].items));
  assert.equal(rows.filter((n) => n === 1).length, 2, String(rows));
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("Flame: shares of the code view, zoom survives a reload", async () => {
  await show(page, "#/flame");
  const names = await column(page, "costs by name", "name");
  assert.equal(names[0], "input.py:14:list_files");
  const tree = printed("code", sample, "--json", "--max-depth", "100", "--order-by", "micros", "--select", "micros");
  const find = (rows, name) => rows.map((row) => (row.name === name ? row : find(row.children ?? [], name))).find(Boolean);
  assert.equal(numbers(await column(page, "costs by name", "self"))[0], find(tree.rows, names[0]).total_micros);
  const box = await (await page.$(".flame canvas")).boundingBox();
  await page.mouse.click(box.x + 100, box.y + 4 * 19 + 9);
  await settle(page);
  const at = (await params(page)).at;
  assert.ok(at);
  await page.reload();
  await page.waitForSelector(".flame canvas");
  assert.equal((await params(page)).at, at);
});

await check("Flame: a stack of 90 frames scrolls on a canvas that is no larger than what is in sight", async () => {
  const file = path.join(scratch, "deep.folded");
  writeFileSync(file, Array.from({ length: 90 }, (_, i) => "frame" + i).join(";") + " 10\n");
  const other = await serve([file]);
  const tab = await open(browser, other);
  await show(tab, "#/flame");
  await tab.waitForSelector(".flame canvas");
  const size = await tab.$eval(".flame", (e) => ({ inside: e.scrollHeight, seen: e.clientHeight, pixels: e.querySelector("canvas").height, ratio: devicePixelRatio }));
  assert.ok(size.inside > 90 * 19 && size.pixels <= size.seen * size.ratio, JSON.stringify(size));
  await tab.$eval(".flame", (e) => (e.scrollTop = e.scrollHeight));
  const box = await (await tab.$(".flame")).boundingBox();
  await tab.mouse.move(box.x + 200, box.y + box.height - 9);
  await tab.waitForFunction(() => /frame89: /.test(document.querySelector(".panel h2 small")?.textContent ?? ""));
  await tab.mouse.click(box.x + 200, box.y + box.height - 9);
  await tab.waitForFunction(() => location.hash.includes("at="));
  assert.equal((await params(tab)).at.split(".").length, 90);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("Ranks: the numbers of the command, the map, its table, keys, the empty state", async () => {
  await show(page, "#/ranks");
  assert.match(await page.innerText("main"), /Only one/);
  const paths = execFileSync("/usr/bin/python3", [path.join(root, "tests/ui/make_ranks.py"), scratch]).toString().trim().split("\n");
  const want = printed("ranks", ...paths, "--json");
  assert.deepEqual([want.blame, want.clock, want.blamed], ["rank", "fitted", [2]]);
  const other = await serve(paths);
  const tab = await open(browser, other);
  await show(tab, "#/ranks");
  await tab.waitForSelector("[aria-label=clocks] td");
  assert.match(await tab.innerText(".verdict p"), new RegExp("rank 2: " + want.blame_why.slice(0, 20).replace(/[+.]/g, ".")));
  for (const [table, names] of [["work of each rank", ["rank", "step_ns", "own_work_ns", "wait_ns", "transfer_ns", "slowdown_caused"]], ["clocks", ["clock_offset_ns", "clock_likely_ns", "clock_proven_ns", "clock_drift_ppm", "pairs_used"]]]) {
    for (const name of names) assert.deepEqual(numbers(await column(tab, table, name)), want.rows.map((row) => row[name]), name);
  }
  assert.deepEqual(await column(tab, "work of each rank", "straggler"), want.rows.map((row) => row.straggler));
  assert.deepEqual(numbers(await column(tab, "collectives by size", "transfer_ns")), want.bandwidth.map((row) => row.transfer_ns));
  assert.equal(await tab.$$eval(".heat [role=application] rect", (all) => all.length), want.map.steps.length * want.map.rows.length);
  await tab.focus(".heat [role=application]");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await tab.keyboard.press(key);
  assert.match(await tab.innerText(".heat figcaption"), new RegExp(`rank 2, step ${want.map.steps[1]}: own work ${want.map.rows[2][2].toFixed(3)} times`));
  await tab.click("button:has-text('as table')");
  const all = want.map.rows.flatMap((line) => line.slice(1)).sort((a, b) => b - a);
  const shown = numbers(await column(tab, "ranks and steps", "own_work_to_peers"));
  assert.ok(shown.length > 20);
  assert.deepEqual(shown, all.slice(0, shown.length));
  await tab.click("button:text-is('compare')");
  await tab.waitForSelector("[aria-label='what changed'] td");
  const pair = await params(tab);
  assert.equal(pair.new_rank, "2");
  const diff = printed("diff", paths[Number(pair.base_rank)], paths[2], "--json");
  assert.deepEqual(numbers(await column(tab, "what changed", "new_ns")), [...diff.rows].sort((a, b) => Math.abs(b.delta_ns) - Math.abs(a.delta_ns)).map((row) => row.new_ns));
  assert.match(await tab.innerText("main"), new RegExp(`Rank 2 \\(new\\) against rank ${pair.base_rank} \\(base\\)`));
  assert.equal(await tab.innerText(".panel footer code"), ["opwatch", "diff", paths[Number(pair.base_rank)], paths[2]].join(" "));
  await tab.click("a:text-is('swap')");
  await settle(tab);
  assert.deepEqual((await params(tab)).base_rank, "2");
  await show(tab, "#/ranks?as=table");
  const url = tab.url();
  await tab.reload();
  await tab.waitForSelector("[aria-label='ranks and steps'] td");
  assert.equal(tab.url(), url);
  await tab.focus("[aria-label='ranks and steps']");
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("Enter");
  await settle(tab);
  assert.match(tab.url(), /#\/timeline\?t=\d+-\d+/);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("Advice: every finding and every rule that was not checked", async () => {
  await show(page, "#/advice");
  const rows = printed("advise", sample, "--json").rows;
  assert.equal(await page.$$eval(".card", (all) => all.length), rows.filter((row) => row.checked).length);
  const whats = await page.$$eval(".card .what", (all) => all.map((one) => one.textContent));
  assert.deepEqual(whats, rows.filter((row) => row.checked).map((row) => row.what));
});

await check("SQL: a statement, a mistake, a file that must not be read, the address", async () => {
  if (!hasSql) return;
  await show(page, "#/sql");
  await page.fill("textarea", "SELECT count(*) AS n FROM event");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("[aria-label=result] td");
  assert.deepEqual(await column(page, "result", "n"), ["429"]);
  const url = page.url();
  await page.reload();
  await page.waitForSelector("[aria-label=result] td");
  assert.equal(page.url(), url);
  const problems = page.problems.length;
  for (const bad of ["SELEC 1", "SELECT * FROM read_csv('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/opwatch-must-not-exist.csv'", "INSTALL httpfs"]) {
    await page.fill("textarea", bad);
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector("main .failure");
    await settle(page, 50);
    assert.equal(await page.$$eval("[aria-label=result] td", (all) => all.length), 0, bad);
  }
  page.problems.splice(problems); // the browser notes each answer that is an error
});

await check("Files: inputs and tracks", async () => {
  await show(page, "#/files");
  assert.deepEqual(numbers(await column(page, "Inputs", "events")), printed("sources", sample, "--json").rows.map((row) => row.events));
  assert.deepEqual(numbers(await column(page, "Tracks", "busy_ns")), printed("tracks", sample, "--json").rows.map((row) => row.busy_ns));
});

await check("the palette goes to a page", async () => {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("flame");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.match(page.url(), /#\/flame/);
});

await check("phases have the order of the model", async () => {
  const rows = await page.evaluate(async () => (await fetch("/api/rows", { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } })).json());
  await show(page, "#/timeline");
  assert.deepEqual(await page.evaluate(() => window.opwatchTimeline.phases), rows.phases);
});

await check("a second browser shows the same by a link with the token", async () => {
  await show(page, "#/ops?q=Conv");
  const tab = await open(browser, { address: server.address + "/ops?q=Conv" });
  await tab.waitForSelector("[aria-label=Operations] td");
  assert.deepEqual(await column(tab, "Operations", "name"), await column(page, "Operations", "name"));
  assert.ok(!tab.url().includes(server.token));
  await tab.context().close();
});

await check("a link in another page and the file that starts the browser lead to the page", async () => {
  const file = path.join(scratch, "redirect.html");
  writeFileSync(file, `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${server.address}"><a href="${server.address}">opwatch</a>`);
  const tab = await open(browser, null);
  await tab.goto("file://" + file);
  await tab.waitForSelector("nav a.on");
  assert.ok(tab.url().startsWith(server.origin), tab.url());
  await tab.context().close();
});

await check("no token: the page says so and shows nothing", async () => {
  const tab = await open(browser, null);
  await tab.goto(server.origin + "/");
  await tab.waitForSelector(".loading h1");
  assert.match(await tab.innerText("main"), /needs its token/);
  await tab.context().close();
});

await check("the console stays empty", async () => assert.deepEqual(page.problems, []));

await check("no request had the token in its address or a Referer", async () => assert.deepEqual(leaks, []));

await check("names with markup stay text", async () => {
  const file = path.join(scratch, "markup.json");
  const evil = ["<img src=x onerror=window.hit=1>", "</script><script>window.hit=1</script>", "‮moc.live", "a".repeat(1 << 20), "{{constructor.constructor('window.hit=1')()}}", "\u0000\u0007"];
  const events = evil.map((name, i) => ({ ph: "X", pid: 1, tid: 1, ts: i * 100, dur: 90, name, args: { note: name } }));
  events.push({ ph: "M", pid: 1, tid: 1, name: "thread_name", args: { name: evil[0] } }, { ph: "M", pid: 1, name: "process_name", args: { name: evil[1] } });
  writeFileSync(file, JSON.stringify({ traceEvents: events }));
  const other = await serve([file]);
  const tab = await open(browser, other);
  for (const link of await tab.$$eval("nav a[href^='#/']", (all) => all.map((a) => a.getAttribute("href")))) {
    await show(tab, link);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, link + ": wider than the window by " + wide);
  }
  await show(tab, "#/timeline?sel=e1");
  await tab.waitForSelector(".details");
  await tab.mouse.move(800, 200);
  assert.equal(await tab.evaluate(() => window.hit), undefined);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("files that cannot be opened, and a damaged one", async () => {
  const file = path.join(scratch, "cut.json");
  writeFileSync(file, '{"traceEvents": [{"ph":"X","pid":1,"tid":1,"ts":0,"dur":9,"name":"a"},{"ph":"X","pid":1,"ti');
  const other = await serve([file]);
  const tab = await open(browser, other);
  await settle(tab);
  assert.ok(await tab.$("header .chip.warn"));
  assert.match(await tab.innerText("main"), /truncated|damaged/);
  await tab.context().close();
  await other.stop();
  const none = await serve([path.join(scratch, "missing.json")]);
  const empty = await open(browser, null);
  await empty.goto(none.address);
  await empty.waitForSelector(".loading [role=alert]");
  assert.match(await empty.innerText("main"), /missing\.json/);
  await empty.context().close();
  await none.stop();
});

await check("the list says which pages are empty, and they say why", async () => {
  const folded = path.join(scratch, "main.folded");
  writeFileSync(folded, "main 1\n");
  for (const [files, known, learned] of [[[folded], ["compare", "memory", "ranks", "timeline"], ["code", "graph", "input", "roofline"]], [[sample], ["compare", "ranks"], []]]) {
    const other = await serve(files);
    const tab = await open(browser, other);
    await settle(tab);
    const words = async () => (await tab.$$eval("nav a:has(.badge.nothing)", (all) => all.map((a) => a.getAttribute("href").slice(2)))).sort();
    assert.deepEqual(await words(), known);
    for (const name of await tab.$$eval("nav a[href^='#/']:not(.logo)", (all) => all.map((a) => a.getAttribute("href").slice(2)))) {
      await show(tab, "#/" + name);
      const empty = await tab.$$eval("main .empty", (all) => all.map((p) => p.textContent));
      const shown = await tab.$$eval("main table, main canvas, main svg", (all) => all.length);
      if (![...known, ...learned].includes(name)) continue;
      assert.equal(shown, 0, name);
      assert.ok(empty.length === 1 && empty[0].length > 40 && /^[A-Z].*[.:]$/.test(empty[0]), name + ": " + empty);
    }
    assert.deepEqual(await words(), [...known, ...learned].sort());
    await tab.context().close();
    await other.stop();
  }
});

await check("Jobs: without files and without a daemon the page says so", async () => {
  const other = await serve([], ["--daemon-socket", path.join(scratch, "no-socket")]);
  const tab = await open(browser, other);
  await settle(tab);
  assert.deepEqual(await tab.$$eval("nav a[href^='#/']:not(.logo)", (all) => all.map((a) => a.getAttribute("href"))), ["#/jobs"]);
  assert.match(await tab.innerText("main"), /daemon/);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("a report opens from disk, offline, with the numbers of the commands", async () => {
  const file = path.join(scratch, "report.html");
  execFileSync(opwatch, ["report", sample, "-o", file]);
  const tab = await open(browser, null);
  await tab.context().setOffline(true);
  const asked = [];
  tab.on("request", (r) => r.url().startsWith("file:") || asked.push(r.url()));
  await tab.goto("file://" + file);
  await tab.waitForSelector("nav a.on");
  assert.equal(await tab.innerText(".verdict p"), printed("verdict", sample, "--json").rows[0].verdict);
  assert.deepEqual(numbers(await column(tab, "Operations by time", "time_ns")), printed("work", sample, "--json").rows.map((row) => row.time_ns).slice(0, (await column(tab, "Operations by time", "time_ns")).length));
  const links = await tab.$$eval("nav a[href^='#/']:not(.logo)", (all) => all.map((a) => a.getAttribute("href")));
  assert.ok(links.length >= 8, String(links));
  for (const link of links) {
    await show(tab, link);
    assert.equal(await tab.$$eval("main .failure", (all) => all.length), 0, link);
  }
  for (const view of ["op", "scope", "opstats"]) {
    await show(tab, "#/ops?view=" + view);
    assert.equal(await tab.$$eval("main .failure", (all) => all.length), 0, view);
  }
  await show(tab, "#/flame?view=scope");
  assert.equal(await tab.$$eval("main .failure", (all) => all.length), 0);
  await show(tab, "#/timeline");
  const drawn = await tab.evaluate(() => {
    const c = window.opwatchTimeline;
    const g = c.canvas.getContext("2d");
    const data = g.getImageData(0, 0, c.canvas.width, 40).data;
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return colours.size;
  });
  assert.ok(drawn > 4, "colours: " + drawn);
  assert.deepEqual(asked, []);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
});

await check("the page says when the server is gone", async () => {
  await server.stop();
  await page.waitForSelector(".gone"); // how soon: live.mjs
});

await browser.close();
rmSync(scratch, { recursive: true });
process.exit(failures() ? 1 : 0);
