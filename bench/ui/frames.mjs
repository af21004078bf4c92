// frames.mjs FILE... : how fast the page is, one line of JSON per file; it never fails. Times are milliseconds.
//   first_paint      from the command until the timeline is painted; the browser is running already
//   gap_*, script_*  20 s of pan, zoom and scroll: time between frames, script per frame
//   tile_*           requests for tiles: what the network layer measured, without waiting for the page's own thread
//   details          from a click on a slice until its details are shown
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

/** Time of one request, in the page. */
const request = (page, path) =>
  page.evaluate(async (address) => {
    const begin = performance.now();
    const answer = await fetch(address, { headers: { "X-Opwatch-Token": sessionStorage.getItem("opwatch-token") } });
    await answer.arrayBuffer();
    return answer.ok ? performance.now() - begin : null;
  }, path);

/** From a click in the middle of the first row with a slice there until the details are shown. */
async function details(page) {
  await page.keyboard.press("f");
  await settle(page, 300);
  const box = await page.locator("canvas[aria-label^='timeline']").boundingBox();
  for (let y = 40; y < box.height; y += 12) {
    const begin = performance.now();
    await page.mouse.click(box.x + box.width / 2, box.y + y);
    const shown = await page.waitForSelector("aside.side table.facts", { timeout: 1000 }).catch(() => null);
    if (shown) return performance.now() - begin;
  }
  return null;
}

/** Anonymous memory of the server: its columns are pages of the file. */
const serverMb = (server) => Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const browser = await launch();
for (const file of process.argv.slice(2)) {
  const begin = performance.now();
  const server = await serve([file]);
  const page = await open(browser, server);
  await page.evaluate(() => (location.hash = "#/timeline"));
  await page.waitForFunction(() => window.opwatchTimeline?.frames.length > 0);
  const first = performance.now() - begin;
  await settle(page, 500);
  const run = await page.evaluate(drive, SECONDS * 1000);
  const numbers = {
    first_paint: first,
    gap_p95: quantile(run.gaps, 0.95),
    gap_p99: quantile(run.gaps, 0.99),
    script_p95: quantile(run.script, 0.95),
    tile_p50: quantile(run.tiles, 0.5),
    tile_p95: quantile(run.tiles, 0.95),
    tile_requests: run.tiles.length,
    details: await details(page),
    area: await request(page, "/api/area?from=0&to=9000000000000000&tracks="),
    search: await request(page, "/api/search?q=op_1.*7"),
    server_mb: serverMb(server),
    rows: run.rows,
  };
  console.log(JSON.stringify({ file, ...Object.fromEntries(Object.entries(numbers).map(([k, v]) => [k, round(v)])) }));
  await page.context().close();
  await server.stop();
}
await browser.close();
