// frames.mjs FILE... : how fast the page is, one line of JSON per file; it never fails. Times are milliseconds.
//   first_paint      from the command until a frame with events of the timeline is painted, after the page Start; the browser is running already
//   gap_*, script_*  20 s of pan, zoom and scroll: time between frames, script per frame
//   tile_*           requests for tiles: what the network layer measured, without waiting for the page's own thread
//   details          from the pointer going down on a slice until the frame with its details is painted, measured in the page; the
//                    largest of several clicks. details_first: until its name and track are
//   table_*          a table of a million rows (a result of SQL) scrolled for some seconds: time between frames
//   area, search     totals of the whole recording; a regular expression over all names
//   server_mb        what the server holds beside the file's own pages
import { readFileSync } from "node:fs";
import { launch, open, serve, settle } from "../../tests/ui/browser.mjs";

const SECONDS = Number(process.env.SECONDS ?? 20);
const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? null;
const round = (value) => (value === null ? null : Math.round(value * 10) / 10);

/** Pans, zooms and scrolls for some seconds; runs in the page. */
async function drive(ms) {
  const c = window.opwatchTimeline;
  const gaps = [];
  const end = performance.now() + ms;
  let last = performance.now();
  let n = 0;
  c.frames.length = 0;
  performance.clearResourceTimings();
  performance.setResourceTimingBufferSize(100000);
  await new Promise((done) => {
    const tick = (now) => {
      gaps.push(now - last);
      last = now;
      const phase = Math.floor(n++ / 60) % 4;
      if (phase === 0) c.zoom(0.97, 0.5);
      else if (phase === 1) c.pan(0.02);
      else if (phase === 2) c.scroll(c.top.value + 6);
      else c.zoom(1.02, 0.5);
      if (performance.now() < end) requestAnimationFrame(tick);
      else done();
    };
    requestAnimationFrame(tick);
  });
  const tiles = performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/tiles"));
  return { gaps, script: [...c.frames], tiles: tiles.map((e) => e.responseEnd - e.requestStart), rows: c.layout.value.lines.length };
}

/** The time of one request, measured in the page. */
const request = (page, path) =>
  page.evaluate(async (address) => {
    const begin = performance.now();
    const answer = await fetch(address, { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } });
    await answer.arrayBuffer();
    return answer.ok ? performance.now() - begin : null;
  }, path);

/** Runs in the page: measures from pointer-down until the available details are painted. */
function watchDetails() {
  window.clicks = [];
  const painted = (then) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => then(performance.now()); c.port2.postMessage(0); });
  document.addEventListener("pointerdown", (e) => {
    const click = { begin: e.timeStamp };
    window.clicks.push(click);
    const look = () => {
      const details = document.querySelector("aside.side .details");
      const id = details?.querySelector("p.fact:last-of-type")?.textContent;
      if (!details || id === click.old) return;
      if (!click.asked) { click.asked = true; painted((now) => (click.first = now - click.begin)); }
      if (!details.classList.contains("waits-facts")) { observer.disconnect(); painted((now) => (click.whole = now - click.begin)); }
    };
    click.old = document.querySelector("aside.side .details p.fact:last-of-type")?.textContent;
    window.lastClick?.disconnect(); // a click beside all slices selects nothing: what comes now belongs to this one
    const observer = (window.lastClick = new MutationObserver(look));
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  }, true);
}

/** Clicks on slices of several rows and places; returns the times of all clicks that selected one. */
async function details(page) {
  await page.keyboard.press("f");
  await settle(page, 300);
  await page.evaluate(watchDetails);
  const box = await page.locator("canvas[aria-label^='timeline']").boundingBox();
  for (let i = 0; i < 12; i++) {
    await page.mouse.click(box.x + box.width * (0.2 + 0.04 * i), box.y + 40 + (i % 4) * 22);
    await settle(page, 200);
  }
  const clicks = (await page.evaluate(() => window.clicks)).filter((c) => c.whole);
  return clicks.length ? { whole: Math.max(...clicks.map((c) => c.whole)), first: Math.max(...clicks.map((c) => c.first)), n: clicks.length } : { whole: null, first: null, n: 0 };
}

/** Runs in the page: scrolls a table a few rows and at times a tenth of it per frame. */
async function scrollTable(ms) {
  const box = document.querySelector("[aria-label=result]");
  const gaps = [];
  const end = performance.now() + ms;
  let last = performance.now();
  await new Promise((done) => {
    const tick = (now) => {
      gaps.push(now - last);
      last = now;
      box.scrollTop = (box.scrollTop + (gaps.length % 40 ? 60 : box.scrollHeight / 10)) % (box.scrollHeight - box.clientHeight);
      if (performance.now() < end) requestAnimationFrame(tick);
      else done();
    };
    requestAnimationFrame(tick);
  });
  return { gaps, rows: Number(box.getAttribute("aria-rowcount")) - 1 };
}

/** A table of a million rows; null without SQL. */
async function table(page) {
  await page.evaluate((text) => (location.hash = "#/sql?query=" + encodeURIComponent(text)), "SELECT id, dur FROM event LIMIT 1000000");
  await page.waitForSelector("[aria-label=result] td, main .failure");
  return (await page.$("[aria-label=result] td")) ? page.evaluate(scrollTable, 5000) : null;
}

/** Anonymous memory of the server: its columns are pages of the file. */
const serverMb = (server) => Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const browser = await launch();
for (const file of process.argv.slice(2)) {
  const begin = performance.now();
  const server = await serve([file]);
  const page = await open(browser, server);
  await page.evaluate(() => (location.hash = "#/timeline"));
  await page.waitForFunction(() => {
    const c = window.opwatchTimeline;
    if (!c?.store.kept.size) return false;
    if (window.framesAtFirst !== undefined) return c.frames.length > window.framesAtFirst;
    window.framesAtFirst = c.frames.length; // the next frame has them for sure
    c.draw();
    return false;
  });
  const first = performance.now() - begin;
  await settle(page, 500);
  const run = await page.evaluate(drive, SECONDS * 1000);
  const clicked = await details(page);
  const numbers = {
    first_paint: first,
    gap_p95: quantile(run.gaps, 0.95),
    gap_p99: quantile(run.gaps, 0.99),
    script_p95: quantile(run.script, 0.95),
    tile_p50: quantile(run.tiles, 0.5),
    tile_p95: quantile(run.tiles, 0.95),
    tile_requests: run.tiles.length,
    details: clicked.whole,
    details_first: clicked.first,
    clicks: clicked.n,
    area: await request(page, "/api/area?from=0&to=9000000000000000&tracks="),
    search: await request(page, "/api/search?q=op_1.*7"),
    server_mb: serverMb(server),
    rows: run.rows,
  };
  const scrolled = await table(page);
  numbers.table_rows = scrolled?.rows ?? null;
  numbers.table_gap_p95 = scrolled && quantile(scrolled.gaps, 0.95);
  numbers.table_gap_p99 = scrolled && quantile(scrolled.gaps, 0.99);
  console.log(JSON.stringify({ file, ...Object.fromEntries(Object.entries(numbers).map(([k, v]) => [k, round(v)])) }));
  await page.context().close();
  await server.stop();
}
await browser.close();
