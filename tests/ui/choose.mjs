// choose.mjs: choosing on the pages: steps and phases on Start, groups of tracks, cursors on Memory, names on Flame, operations on Ops, points on Roofline, rows of SQL,
// one step of two runs on Compare. By mouse and by keys; the numbers are those of the commands; a reload shows the same. Run by
// tests/integration/ui_browser_test.py; prints one line per check and ends with status 1 if one fails.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, column, failures, launch, numbers, open, params, printed, root, serve, settle, show } from "./browser.mjs";

const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-ui-"));
const sample = path.join(root, "samples/resnet.profile");
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

/** The middle of the n-th bar of the chart of steps. */
async function stepAt(n) {
  const box = await (await page.$(".start svg[role=application] g.step:nth-of-type(" + (n + 4) + ") rect")).boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
}
const steps = printed("steps", sample, "--json").rows;
const rangeOf = (first, last) => [steps[first].start_ns, steps[last].start_ns + steps[last].duration_ns];
const timeOption = ([from, to]) => ["--time-range", `${from}ns:${to}ns`];

await check("Start: a drag over steps chooses them for all pages", async () => {
  await show(page, "#/start");
  await page.mouse.move(...(await stepAt(1)));
  await page.mouse.down();
  await page.mouse.move(...(await stepAt(2)), { steps: 4 });
  await page.mouse.up();
  await settle(page);
  const range = rangeOf(1, 2);
  assert.equal((await params(page)).range, range.join("-"));
  assert.match(await page.innerText(".chip.part"), /steps 1 to 2/);
  const work = printed("work", sample, "--json", ...timeOption(range)).rows;
  const whole = printed("work", sample, "--json").rows;
  assert.notDeepEqual(work.map((row) => row.time_ns), whole.map((row) => row.time_ns));
  const shown = numbers(await column(page, "Operations by time", "time_ns"));
  assert.deepEqual(shown, work.map((row) => row.time_ns).slice(0, shown.length));
  // The list at the left and links keep it; the commands say it.
  await page.click("nav a[href='#/ops']");
  await settle(page);
  assert.equal((await params(page)).range, range.join("-"));
  const ops = numbers(await column(page, "Operations", "time_ns"));
  assert.deepEqual(ops, work.map((row) => row.time_ns).slice(0, ops.length));
  assert.match(await page.innerText(".panel footer code"), /opwatch work .* --time-range /);
  await page.reload();
  await page.waitForSelector("[aria-label=Operations] td");
  await settle(page);
  assert.deepEqual(numbers(await column(page, "Operations", "time_ns")), ops);
  await page.click("nav a[href='#/timeline']");
  await settle(page);
  const { from, to } = await page.evaluate(() => window.opwatchTimeline.range.value);
  assert.deepEqual([Math.round(from), Math.round(to)], range);
  await page.click(".chip.part button");
  await settle(page);
  assert.equal((await params(page)).range, undefined);
  assert.equal(await page.$(".chip.part"), null);
});

await check("Start: steps by keys: arrows, Shift, Escape, Enter; Back takes it back", async () => {
  await show(page, "#/start");
  await page.focus(".start svg[role=application]");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  await settle(page);
  assert.equal((await params(page)).range, rangeOf(0, 1).join("-"));
  await page.goBack();
  await settle(page);
  assert.equal((await params(page)).range, undefined);
  await page.focus(".start svg[role=application]");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.match(page.url(), /#\/timeline\?t=/);
});

await check("Start: from the verdict to the line of code without help", async () => {
  await show(page, "#/start");
  await page.click(".ways a:has-text('input.py:14')");
  await settle(page);
  assert.match(await page.innerText(".line.wanted"), /14.*matching_files/s);
});

await check("Memory: a cursor shows what is in use then, two what changed", async () => {
  await show(page, "#/memory");
  const plot = await (await page.$(".chart .u-over")).boundingBox();
  await page.mouse.click(plot.x + 12, plot.y + 60);
  await page.waitForFunction(() => /cursors=\d+$/.test(location.hash));
  await settle(page);
  const first = (await params(page)).cursors;
  const heap = printed("heaps", sample, "--json").rows[0];
  const of = (rows, by) => rows.filter((row) => row.device === heap.device && row.allocator === heap.allocator && row.grouped_by === by);
  const one = of(printed("memory_at", sample, "--json", "--time-range", `:${first}ns`).rows, "op");
  const shown = numbers(await column(page, "memory at the cursor", "bytes"));
  assert.ok(shown.length > 5);
  assert.deepEqual(shown, one.map((row) => row.bytes).slice(0, shown.length));
  await page.keyboard.down("Shift");
  await page.mouse.click(plot.x + plot.width - 60, plot.y + 60);
  await page.keyboard.up("Shift");
  await page.waitForFunction(() => /cursors=\d+(%2C|,)\d+/.test(location.hash));
  await page.click("button:text-is('by line')");
  await settle(page);
  const [a, b] = (await params(page)).cursors.split(",");
  assert.equal(a, first);
  const two = of(printed("memory_at", sample, "--json", "--time-range", `${a}ns:${b}ns`).rows, "line");
  for (const name of ["start_bytes", "bytes", "change_bytes"]) assert.deepEqual(numbers(await column(page, "memory at the cursor", name)), two.map((row) => row[name]), name);
  const before = await column(page, "memory at the cursor", "change_bytes");
  await page.reload();
  await page.waitForSelector("[aria-label='memory at the cursor'] td");
  assert.deepEqual(await column(page, "memory at the cursor", "change_bytes"), before);
  await page.click("button:text-is('remove cursors')");
  await page.focus(".chart");
  await page.keyboard.press("End");
  await page.waitForFunction(() => /cursors=\d+/.test(location.hash));
  await page.keyboard.press("Shift+Home");
  await page.waitForFunction(() => /cursors=\d+(%2C|,)\d+/.test(location.hash));
  await page.click("button:text-is('show in the timeline')");
  await settle(page);
  assert.match(page.url(), /#\/timeline\?t=/);
});

await check("Flame: callers and callees, recursion, drop, merge, the table follows", async () => {
  const file = path.join(scratch, "stacks.folded");
  writeFileSync(file, "main;a;b;a;c 10\nmain;a;d 5\nmain;e;d 3\nmain;e 2\n");
  const other = await serve([file]);
  const tab = await open(browser, other);
  const costs = async () => {
    const [names, own, total] = [await column(tab, "costs by name", "name"), numbers(await column(tab, "costs by name", "self")), numbers(await column(tab, "costs by name", "total"))];
    return Object.fromEntries(names.map((name, i) => [name, [own[i], total[i]]]));
  };
  await show(tab, "#/flame");
  assert.deepEqual(await costs(), { main: [0, 20], a: [0, 15], b: [0, 10], c: [10, 10], d: [8, 8], e: [2, 5] });
  await tab.click("[aria-label='costs by name'] td[title='d']");
  await settle(tab);
  assert.equal(await tab.$$eval(".flame canvas", (all) => all.length), 2);
  assert.match(await tab.innerText(".panel h2"), /^d\s+8, own 8; 40/);
  await tab.click("button:text-is('drop')");
  await settle(tab);
  assert.deepEqual(await costs(), { main: [0, 12], a: [0, 10], b: [0, 10], c: [10, 10], e: [2, 2] });
  await tab.click("button[aria-label='show d again']");
  await settle(tab);
  await show(tab, "#/flame?merge=d");
  assert.deepEqual(await costs(), { main: [0, 20], a: [5, 15], b: [0, 10], c: [10, 10], e: [5, 5] });
  await show(tab, "#/flame");
  await tab.click("label:has-text('collapse recursion') input");
  await settle(tab);
  assert.deepEqual(await costs(), { main: [0, 20], a: [0, 15], b: [0, 0], c: [10, 10], d: [8, 8], e: [2, 5] });
  // The keys of the graph: down to main, down to the heavier child, zoom; the table shows what is inside.
  await show(tab, "#/flame");
  await tab.focus(".flame canvas");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"]) await tab.keyboard.press(key);
  await settle(tab);
  assert.equal((await params(tab)).at, "0.1");
  assert.deepEqual(await costs(), { e: [2, 5], d: [3, 3] });
  await tab.reload();
  await tab.waitForSelector("[aria-label='costs by name'] td");
  await settle(tab);
  assert.deepEqual(await costs(), { e: [2, 5], d: [3, 3] });
  await tab.focus(".flame canvas");
  await tab.keyboard.press("Escape");
  await settle(tab);
  assert.equal((await params(tab)).at, "0");
  assert.ok("main" in (await costs()));
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

/** How many pixels of the timeline have full colours: those that are not dimmed. */
const strong = () =>
  page.evaluate(() => {
    const c = window.opwatchTimeline.canvas;
    const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let count = 0;
    for (let i = 0; i < data.length; i += 4) if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 80) count++;
    return count;
  });

await check("Start: a phase leads to the timeline, where the others are dimmed; Escape and Back show all", async () => {
  await show(page, "#/start");
  await page.click("figure.steps .legend a:has-text('compute')");
  await page.waitForFunction(() => window.opwatchTimeline?.frames.length > 0);
  await settle(page, 200);
  assert.equal((await params(page)).phase, "compute");
  const one = await strong();
  assert.equal(await page.getAttribute(".corner .legend button:has-text('compute')", "aria-pressed"), "true");
  await page.keyboard.press("Escape");
  await settle(page, 200);
  const all = await strong();
  assert.ok(one > 0 && all > 2 * one, `${one} of ${all} pixels`);
  await page.goBack();
  await settle(page, 200);
  assert.equal(await strong(), one);
  await page.focus(".corner .legend button:has-text('compute')");
  await page.keyboard.press("Enter");
  assert.equal((await params(page)).phase, undefined);
});

await check("Timeline: tracks by process, rank, device or kind; a reload keeps it", async () => {
  await show(page, "#/timeline");
  const groups = () => page.$$eval(".labels .label.group .name", (all) => all.map((e) => e.textContent));
  await page.selectOption("[aria-label='group tracks by']", "kind");
  await settle(page);
  const kinds = [...new Set(printed("tracks", sample, "--json").rows.map((row) => row.kind))];
  assert.deepEqual((await groups()).sort(), [...kinds, "memory"].sort());
  await page.reload();
  await page.waitForSelector(".labels .label.group");
  assert.deepEqual((await groups()).sort(), [...kinds, "memory"].sort());
  await page.selectOption("[aria-label='group tracks by']", "device");
  await settle(page);
  assert.ok((await groups()).includes("cpu:0"), String(await groups()));
  await page.selectOption("[aria-label='group tracks by']", "");
});

await check("Timeline: findings that name the selection stand below it", async () => {
  const found = printed("advise", sample, "--json").rows.find((row) => row.rule === "input_wait");
  const event = found.evidence.find((e) => e.event).event;
  await show(page, "#/timeline?sel=e" + event);
  await page.waitForSelector("aside.side .findings");
  assert.ok((await page.innerText("aside.side .findings")).includes(found.what));
  await page.click("aside.side .findings a >> nth=0");
  assert.equal((await params(page)).rule, "input_wait");
});

await check("Ops: by line and by device, the numbers of the commands; a line leads to the code", async () => {
  for (const [view, name] of [["lines", "time_ns"], ["devices", "busy_ns"]]) {
    await show(page, "#/ops?view=" + view);
    assert.deepEqual(numbers(await column(page, "Operations", name)), printed(view, sample, "--json").rows.map((row) => row[name]), view);
  }
  await show(page, "#/ops?view=lines");
  await page.focus("[aria-label=Operations]");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".code-page");
  assert.deepEqual([(await params(page)).line, (await params(page)).file.endsWith("input.py")], ["14", true]);
});

await check("Ops: time per step beside each type; Space shows it and the durations", async () => {
  if (!hasSql) return;
  await show(page, "#/ops");
  await page.waitForSelector(".spark");
  await page.focus("[aria-label=Operations]");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press(" ");
  await page.waitForSelector(".bars svg");
  await settle(page);
  const type = (await params(page)).op;
  assert.equal(type, "MatchingFiles");
  for (const [title, query, values] of [["Own time per step", "op_steps", (row) => row.self_ms], ["Durations of its runs", "durations", (row) => row.runs]]) {
    const want = printed("ask", query, sample, "--type", type, "--json").rows.map(values);
    const heights = await page.$$eval(`svg[aria-label^='${title}'] rect.value`, (all) => all.map((r) => Number(r.getAttribute("height"))));
    assert.equal(heights.length, want.length);
    const most = Math.max(...want);
    heights.forEach((height, i) => assert.ok(Math.abs(height / Math.max(...heights) - want[i] / most) < 0.01, `${title} ${i}`));
  }
  await page.focus("svg[aria-label^='Own time per step']");
  await page.keyboard.press("End");
  assert.match(await page.innerText("figure.bars figcaption >> nth=0"), /^step 2: 163 ms in 1 run/);
  await page.reload();
  await page.waitForSelector(".bars svg");
  assert.equal((await params(page)).op, type);
});

await check("SQL: a chart, a row leads to the timeline, CSV and Parquet are saved", async () => {
  if (!hasSql) return;
  await show(page, "#/sql?query=" + encodeURIComponent("SELECT name, id, ts, dur FROM event ORDER BY dur DESC LIMIT 5"));
  await page.waitForSelector("[aria-label=result] td");
  await page.click("button:text-is('chart')");
  assert.equal(await page.$$eval(".bars rect.value", (all) => all.length), 5);
  const saved = {};
  for (const kind of ["CSV", "Parquet"]) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`button:text-is('save ${kind}')`)]);
    saved[kind] = readFileSync(await file.path());
    assert.equal(file.suggestedFilename(), "answer." + kind.toLowerCase());
  }
  assert.match(saved.CSV.toString(), /^name,id,ts,dur\r?\n/);
  assert.equal(saved.CSV.toString().trim().split("\n").length, 6);
  assert.equal(saved.Parquet.subarray(0, 4).toString() + saved.Parquet.subarray(-4).toString(), "PAR1PAR1");
  const ids = await column(page, "result", "id");
  await page.focus("[aria-label=result]");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal((await params(page)).sel, "e" + numbers(ids)[0]);
  // A row with a time and without an event: its time.
  await show(page, "#/sql?query=" + encodeURIComponent("SELECT number, start_ns, end_ns FROM step ORDER BY number"));
  await page.waitForSelector("[aria-label=result] td");
  await page.click("[aria-label=result] tbody tr:nth-child(2)");
  await settle(page);
  const [from, to] = (await params(page)).t.split("-").map(Number);
  assert.ok(from < steps[1].start_ns && to > steps[1].start_ns + steps[1].duration_ns && to - from < 2 * steps[1].duration_ns, `${from} ${to}`);
});

await check("Roofline: a box around points keeps them in the table", async () => {
  const file = path.join(root, "tests/fuzz/seeds/trace/kineto.json");
  const other = await serve([file]);
  const tab = await open(browser, other);
  await show(tab, "#/roofline?peak=A100");
  const all = await column(tab, "Operations", "name");
  const point = await (await tab.$(".roof .point")).boundingBox();
  const drag = async (x, y) => {
    await tab.mouse.move(x - 14, y - 14);
    await tab.mouse.down();
    await tab.mouse.move(x + 14, y + 14, { steps: 3 });
    await tab.mouse.up();
    await settle(tab);
  };
  await drag(point.x + point.width / 2, point.y + point.height / 2);
  const kept = await column(tab, "Operations", "name");
  assert.ok(kept.length > 0 && kept.length <= all.length, `${kept.length} of ${all.length}`);
  assert.ok((await params(tab)).box);
  await tab.reload();
  await tab.waitForSelector("[aria-label=Operations] td");
  assert.deepEqual(await column(tab, "Operations", "name"), kept);
  const plot = await (await tab.$(".roof svg")).boundingBox();
  await drag(plot.x + plot.width * 0.93, plot.y + plot.height * 0.8);
  assert.equal((await column(tab, "Operations", "name")).length, 0);
  await tab.click("button:has-text('show all operations')");
  await settle(tab);
  assert.deepEqual(await column(tab, "Operations", "name"), all);
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

await check("Compare: one step of each run on one scale", async () => {
  if (!hasSql) return;
  const make = (name, input) => {
    const events = [];
    for (let i = 0; i < 5; i++) {
      const t = i * 20000;
      events.push({ ph: "X", pid: 1, tid: 1, ts: t, dur: input + 3000, name: `ProfilerStep#${i}`, cat: "user_annotation" });
      events.push({ ph: "X", pid: 1, tid: 1, ts: t + 10, dur: input, name: "load", cat: "cpu_op" }, { ph: "X", pid: 1, tid: 1, ts: t + 20 + input, dur: 2000, name: "aten::mm", cat: "cpu_op" });
    }
    const file = path.join(scratch, name);
    writeFileSync(file, JSON.stringify({ traceEvents: events }));
    return file;
  };
  const [a, b] = [make("a.json", 4000), make("b.json", 8000)];
  const other = await serve([b], ["--base", a]);
  const tab = await open(browser, other);
  await show(tab, "#/compare");
  await tab.waitForSelector("canvas.aligned");
  const box = await (await tab.$("canvas.aligned")).boundingBox();
  const want = printed("ask", "step_slices", "--run", `base=${a}`, "--run", `new=${b}`, "--json").rows;
  const load = want.filter((row) => row.name === "load");
  assert.deepEqual(load.map((row) => [row.run, row.at_us, row.dur_us]), [["base", 10, 4000], ["new", 10, 8000]]);
  // The pointer finds the slice of the new run below that of the base, twice as long.
  const texts = new Set();
  for (let y = 4; y < box.height; y += 7) {
    await tab.mouse.move(box.x + box.width * 0.4, box.y + y);
    texts.add(await tab.innerText(".panel:has(canvas.aligned) h2 small"));
  }
  assert.ok([...texts].some((text) => text.startsWith("load: 10.0 µs after the start, for 8.00 ms")), [...texts].join("\n"));
  assert.deepEqual(tab.problems, []);
  await tab.context().close();
  await other.stop();
});

// Reading pixels is what this test does, not the page.
await check("the console stays empty", async () => assert.deepEqual(page.problems.filter((text) => !text.includes("willReadFrequently")), []));
await browser.close();
await server.stop();
rmSync(scratch, { recursive: true });
process.exit(failures() ? 1 : 0);
