// interact.mjs: what one does with the pages Graph, Compare, Advice and with the timeline beyond looking: gaps, chains of links, folded
// steps, the table of what is in sight; and that every page is free of violations that axe-core finds, light and dark. Run by
// tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, column, failures, launch, numbers, open, params, printed, root, serve, settle, show } from "./browser.mjs";

const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
const sample = path.join(root, "samples/resnet.profile");
const axe = readFileSync(path.join(root, "build/deps/ui/node_modules/axe-core/axe.min.js"), "utf8");
const browser = await launch();

/** A trace of PyTorch's profiler: steps in which the device waits for the loader. `slow` makes the loader slower in one step. */
function trace(file, { steps = 6, input = 4000, slow = -1 } = {}) {
  const events = [];
  const slice = (tid, ts, dur, name, cat, args = {}) => events.push({ ph: "X", pid: cat === "kernel" ? 0 : 1, tid, ts, dur, name, cat, args });
  let t = 0;
  for (let i = 0; i < steps; i++) {
    const wait = input * (i === slow ? 3 : 1);
    slice(1, t, wait + 3000, `ProfilerStep#${i}`, "user_annotation");
    slice(1, t + 10, wait - 20, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation");
    for (let k = 0; k < 4; k++) {
      const at = t + wait + k * 500;
      const correlation = i * 10 + k + 1;
      slice(1, at, 100, "aten::mm", "cpu_op", { "External id": correlation });
      slice(1, at + 20, 40, "cudaLaunchKernel", "cuda_runtime", { correlation });
      slice(7, at + 200, 400, "sgemm_kernel", "kernel", { correlation, stream: 7, device: 0 });
      events.push({ ph: "s", id: correlation, pid: 1, tid: 1, ts: at + 20, cat: "ac2g", name: "ac2g" }, { ph: "f", bp: "e", id: correlation, pid: 0, tid: 7, ts: at + 200, cat: "ac2g", name: "ac2g" });
    }
    t += wait + 3100;
  }
  writeFileSync(file, JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: "GPU" }], traceEvents: events }));
  return file;
}
const base = trace(path.join(scratch, "base.json"));
const slower = trace(path.join(scratch, "new.json"), { input: 6000, slow: 3 });

const server = await serve([slower], ["--base", base]);
const page = await open(browser, server);
await settle(page);

await check("Compare: the numbers of diff", async () => {
  await show(page, "#/compare");
  await page.waitForSelector("[aria-label='what changed'] td");
  const diff = printed("diff", base, slower, "--json");
  assert.match((await page.innerText(".verdict p")).toLowerCase(), new RegExp(diff.sentence.slice(0, 12).toLowerCase().replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  const want = [...diff.rows].sort((a, b) => Math.abs(b.delta_ns) - Math.abs(a.delta_ns)).map((row) => row.delta_ns);
  const shown = numbers(await column(page, "what changed", "delta_ns"));
  assert.deepEqual(shown, want.slice(0, shown.length));
  const sum = (key) => diff.rows.reduce((all, row) => all + row[key], 0);
  const phases = await page.$$eval("table.phases td.number[title]", (cells) => cells.map((c) => Number(c.title.split(" ")[0])));
  assert.equal(phases.filter((_, i) => i % 3 === 2).reduce((a, b) => a + b, 0), sum("delta_ns"));
  const kinds = await page.$$eval("main button[aria-pressed]", (all) => all.map((b) => b.innerText));
  assert.ok(kinds.some((text) => text.startsWith("all " + diff.rows.length)), String(kinds));
});

await check("Timeline: a gap of the device says what it waited for", async () => {
  await show(page, "#/timeline");
  const at = await page.evaluate(() => {
    const c = window.opwatchTimeline;
    const line = c.layout.value.lines.find((l) => l.rows[0].items === 24);
    const { from, to } = c.range.value;
    const step = c.store.steps[1];
    return { x: ((step.start + 2e6 - from) / (to - from)) * c.size.value.width, y: line.y + 8 };
  });
  const box = await (await page.$(".timeline .body canvas")).boundingBox();
  await page.mouse.move(box.x + at.x, box.y + at.y);
  await page.waitForFunction(() => /waited for the host/.test(document.querySelector(".hover")?.textContent ?? ""));
  const text = await page.innerText(".hover");
  assert.match(text, /sgemm_kernel, was launched/);
  assert.match(text, /enumerate\(DataLoader\)/);
});

await check("Timeline: a chain of links, one hop and whole", async () => {
  const kernel = await page.evaluate(async () => {
    const ask = async (path) => (await fetch(path, { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } })).json();
    return (await ask("/api/search?q=^sgemm_kernel$")).rows[0].longest;
  });
  await show(page, "#/timeline?sel=e" + kernel);
  await page.waitForSelector(".details .links");
  await page.click(".details h3 button");
  await page.waitForFunction(() => window.opwatchTimeline.chain.value !== null);
  assert.equal((await params(page)).flow, "all");
  const chain = await page.evaluate(() => window.opwatchTimeline.chain.value);
  assert.deepEqual(chain.links.map((l) => [l.from.name, l.to.name]), [["cudaLaunchKernel", "sgemm_kernel"]]);
  await page.reload();
  await page.waitForFunction(() => window.opwatchTimeline?.chain.value !== null && window.opwatchTimeline?.chain.value !== undefined);
});

await check("Timeline: steps are those of the view; [ and ] go from one to the next", async () => {
  await show(page, "#/timeline");
  const steps = printed("steps", slower, "--json").rows;
  const shown = await page.evaluate(() => window.opwatchTimeline.store.steps.map((s) => [s.number, s.start, s.end - s.start]));
  assert.deepEqual(shown, steps.map((row) => [row.step, row.start_ns, row.duration_ns]));
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  const range = await page.evaluate(() => window.opwatchTimeline.range.value);
  assert.ok(shown.some(([, start, length]) => Math.abs(range.from - (start - length * 0.02)) < 2), JSON.stringify(range));
});

await check("Timeline: folded steps name what grew, and lead to the step", async () => {
  await show(page, "#/timeline?steps=1");
  await page.waitForSelector(".folded li");
  const lines = await page.$$eval(".folded li", (all) => all.map((li) => li.innerText));
  assert.equal(lines.length, 6);
  assert.match(lines[0], /^median: step \d/);
  assert.match(lines.find((text) => text.includes("step 3")), /\+12\.\d ms input/);
  const drawn = await page.$eval(".folded canvas", (canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, 60).data.buffer)).size);
  assert.ok(drawn > 3, "colours: " + drawn);
  await page.click(".folded li:nth-child(2) button");
  await settle(page);
  assert.ok((await params(page)).t && !(await params(page)).steps);
});

await check("Timeline: the critical path has the pieces of the command, in their places; a piece leads to its event", async () => {
  await show(page, "#/timeline?t=0-9000000");
  await page.keyboard.press("p");
  await settle(page);
  assert.equal((await params(page)).path, "0"); // the step in sight
  await show(page, "#/timeline?path=on");
  const want = printed("path", slower, "--json");
  assert.ok(want.rows.length > 5);
  assert.match(await page.innerText(".path-label"), new RegExp("of step " + want.step + "$"));
  const shown = numbers(await column(page, "pieces of the critical path", "dur_ns"));
  assert.deepEqual(shown, want.rows.map((row) => row.dur_ns).slice(0, shown.length));
  assert.equal(want.rows.reduce((sum, row) => sum + row.dur_ns, 0), want.step_ns);
  // The middle of the longest piece of a kernel, on the strip: a click selects the event that the command names.
  const step = printed("steps", slower, "--json").rows.find((row) => row.step === want.step);
  const longest = want.rows.reduce((a, b) => (b.event && b.dur_ns > a.dur_ns ? b : a));
  const before = want.rows.slice(0, want.rows.indexOf(longest)).reduce((sum, row) => sum + row.dur_ns, 0);
  const at = await page.evaluate((t) => { const c = window.opwatchTimeline; const { from, to } = c.range.value; return ((t - from) / (to - from)) * c.size.value.width; }, step.start_ns + before + longest.dur_ns / 2);
  await page.click(".path-strip canvas", { position: { x: at, y: 12 } });
  await page.waitForSelector(".details");
  assert.equal((await params(page)).sel, "e" + longest.event);
  const url = page.url();
  await page.reload();
  await page.waitForSelector(".path-strip canvas");
  await settle(page);
  assert.equal(page.url(), url);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal((await params(page)).path, undefined);
});

await check("Timeline: e makes a table of everything in sight", async () => {
  await show(page, "#/timeline");
  await page.keyboard.press("e");
  await page.waitForSelector("[aria-label='what is in the area'] td");
  const count = numbers(await column(page, "what is in the area", "count")).reduce((a, b) => a + b, 0);
  assert.equal(count, 6 * (2 + 4 * 3));
});

await check("Timeline: search dims, hides, and Escape ends it", async () => {
  await show(page, "#/timeline?q=sgemm");
  const ink = () => page.evaluate(() => { const c = window.opwatchTimeline.canvas; const data = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer); const counts = new Map(); for (const d of data) counts.set(d, (counts.get(d) ?? 0) + 1); return data.length - Math.max(...counts.values()); });
  await page.waitForFunction(() => window.opwatchTimeline.found.value !== null);
  await settle(page);
  const dimmed = await ink();
  await page.click("label:has-text('hide others') input");
  await settle(page);
  assert.ok((await ink()) < dimmed * 0.8, `${await ink()} of ${dimmed}`);
  await page.keyboard.press("Escape");
  await page.click(".timeline .body canvas", { position: { x: 5, y: 5 } });
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal((await params(page)).q, undefined);
});

await check("Timeline: pins and collapsed tracks stay in the address", async () => {
  await show(page, "#/timeline");
  const before = await page.evaluate(() => window.opwatchTimeline.layout.value.height);
  await page.click(".labels .label.track button.fold[aria-label^='collapse thread']");
  await settle(page);
  assert.ok((await page.evaluate(() => window.opwatchTimeline.layout.value.height)) < before);
  await page.hover(".labels .label.track");
  await page.click(".labels .label.track button.pin");
  await page.reload();
  await page.waitForSelector(".labels .label");
  assert.equal(await page.innerText(".labels .label.group .name"), "pinned");
  await page.goBack();
  await page.goBack();
  await settle(page);
  assert.equal(await page.evaluate(() => window.opwatchTimeline.layout.value.height), before);
});

await check("Advice: evidence leads to its event in the timeline", async () => {
  await show(page, "#/advice");
  const found = printed("advise", slower, "--json").rows.filter((row) => row.checked && row.evidence?.length);
  assert.ok(found.length > 0);
  const links = await page.$$eval(".card dd li a", (all) => all.map((a) => a.getAttribute("href")));
  const wanted = found[0].evidence[0];
  const first = links.find((href) => href.startsWith("#/timeline"));
  if (wanted.event) assert.ok(first.includes("sel=e" + wanted.event), first);
  await page.click(`.card dd li a[href='${first}']`);
  await settle(page);
  const { from, to } = await page.evaluate(() => window.opwatchTimeline.range.value);
  const zero = await page.evaluate(async () => (await (await fetch("/api/state", { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } })).json()).start_ns);
  const at = wanted.ts_ns - Number(zero);
  assert.ok(from <= at + 1000 && to >= at, `${from} ${at} ${to}`);
});

await check("copy as link, command, SQL, Markdown on a panel", async () => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await show(page, "#/ops");
  await page.waitForSelector("[aria-label=Operations] td");
  const texts = {};
  for (const name of ["link", "command", "SQL", "Markdown", "CSV"]) {
    await page.click(".panel footer button:has-text('copy as')");
    await page.click(`.panel footer .copies button:has-text('${name}')`);
    await page.waitForFunction((what) => document.querySelector(".toast")?.textContent === "copied: " + what, name);
    texts[name] = await page.evaluate(() => navigator.clipboard.readText());
  }
  assert.ok(texts.link.startsWith(server.origin) && texts.link.includes("#t="));
  assert.match(texts.command, /^opwatch work /);
  assert.match(texts.SQL, /^SELECT \* FROM work_view/);
  assert.match(texts.Markdown, /^\| name \|/);
  assert.match(texts.CSV, /^name,/);
});

// Reading the canvas back is what the checks do, not the page.
await check("the console stays empty", async () => assert.deepEqual(page.problems.filter((text) => !text.includes("willReadFrequently")), []));
await page.context().close();
await server.stop();

const graphServer = await serve([sample]);
const tab = await open(browser, graphServer);

await check("Graph: costs of the scope view; scopes open, in the address, and close", async () => {
  await show(tab, "#/graph");
  await tab.waitForSelector(".graph .node");
  const scopes = new Map();
  const walk = (rows) => rows.forEach((row) => { scopes.set(row.name, row.total_micros); walk(row.children ?? []); });
  walk(printed("scope", sample, "--max-depth", "1000", "--select", "micros,bytes,float_ops,params,occurrence", "--order-by", "name", "--json").rows);
  const names = await column(tab, "nodes of the graph", "name");
  const costs = numbers(await column(tab, "nodes of the graph", "cost"));
  assert.ok(names.length > 1);
  names.forEach((name, i) => assert.equal(costs[i], scopes.get(name) ?? null, name));
  const scope = await tab.$eval(".graph .node.scope title", (t) => t.textContent.split("\n")[0]);
  await tab.dblclick(`.graph .node.scope:has(title:text-is("${await tab.$eval(".graph .node.scope title", (t) => t.textContent)}"))`).catch(() => tab.dblclick(".graph .node.scope"));
  await settle(tab);
  const open = (await params(tab)).open;
  assert.ok(open, "nothing was opened");
  const inside = await column(tab, "nodes of the graph", "name");
  await tab.reload();
  await tab.waitForSelector(".graph .node");
  assert.deepEqual(await column(tab, "nodes of the graph", "name"), inside);
  await tab.click(`.bar button[title='close ${open.split("\n")[0]}']`);
  await settle(tab);
  assert.deepEqual(await column(tab, "nodes of the graph", "name"), names);
  assert.ok(scope);
});

await check("Timeline: without what a critical path needs, the panel says why", async () => {
  await show(tab, "#/timeline?path=on");
  const want = printed("path", sample, "--json");
  assert.ok(want.footer && !want.rows.length);
  assert.equal((await tab.innerText(".side .empty")).toLowerCase(), want.footer.toLowerCase() + ".");
});

await check("Graph: rows by keyboard select and open", async () => {
  await show(tab, "#/graph");
  await tab.focus("[aria-label='nodes of the graph']");
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("Enter");
  await settle(tab);
  assert.ok((await params(tab)).node);
  assert.equal(await tab.$$eval(".graph .node.chosen", (all) => all.length), 1);
});

await check("every page by keyboard: each control has a name, the focus is visible", async () => {
  for (const name of ["start", "advice", "timeline", "ops", "flame", "memory", "sql", "files"]) {
    await show(tab, "#/" + name);
    await tab.focus("nav a.logo");
    const seen = new Set();
    for (let i = 0; i < 60; i++) {
      await tab.keyboard.press("Tab");
      const at = await tab.evaluate(() => { const e = document.activeElement; if (!e || e === document.body) return null; return { name: (e.getAttribute("aria-label") || e.innerText || e.getAttribute("placeholder") || e.getAttribute("title") || e.labels?.[0]?.innerText || "").trim(), html: e.outerHTML.slice(0, 120), outline: getComputedStyle(e).outlineStyle }; });
      if (!at) break;
      assert.ok(at.name, `${name}: ${at.html}`);
      assert.notEqual(at.outline, "none", `${name}: ${at.html}`);
      seen.add(at.html);
    }
    assert.ok(seen.size > 10, name + ": " + seen.size);
  }
});

/** What axe-core finds wrong on the page as it is. */
async function violations(tab) {
  await tab.evaluate(axe + ";0");
  const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((v) => `${v.id}: ${v.help} ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(" | ")}`);
}

for (const colorScheme of ["light", "dark"])
  await check("axe-core finds nothing on any page, " + colorScheme, async () => {
    // Another way around the policy of the page, which forbids foreign scripts, as it should.
    const own = await open(browser, graphServer, { colorScheme, bypassCSP: true });
    const links = await own.$$eval("nav a[href^='#/']:not(.logo)", (all) => all.map((a) => a.getAttribute("href")));
    const found = [];
    for (const link of [...links, "#/timeline?sel=e5", "#/ops?view=op", "#/timeline?q=Conv", "#/timeline?path=on"]) {
      await show(own, link);
      found.push(...(await violations(own)).map((text) => link + " " + text));
    }
    await own.keyboard.press("Control+k");
    await own.waitForSelector(".palette");
    found.push(...(await violations(own)).map((text) => "palette " + text));
    assert.deepEqual(found, []);
    await own.context().close();
  });

await check("axe-core finds nothing on Ranks and Compare with data", async () => {
  const paths = execFileSync("/usr/bin/python3", [path.join(root, "tests/ui/make_ranks.py"), scratch]).toString().trim().split("\n");
  const found = [];
  for (const [files, options, links] of [[paths, [], ["#/ranks", "#/ranks?as=table", "#/ranks?by=duration", "#/start"]], [[slower], ["--base", base], ["#/compare", "#/advice", "#/input", "#/timeline?path=on"]]]) {
    const other = await serve(files, options);
    const own = await open(browser, other, { bypassCSP: true });
    for (const link of links) {
      await show(own, link);
      found.push(...(await violations(own)).map((text) => link + " " + text));
    }
    await own.context().close();
    await other.stop();
  }
  assert.deepEqual(found, []);
});

await check("the console stays empty on the graph", async () => assert.deepEqual(tab.problems, []));
await tab.context().close();
await graphServer.stop();
await browser.close();
rmSync(scratch, { recursive: true });
process.exit(failures() ? 1 : 0);
