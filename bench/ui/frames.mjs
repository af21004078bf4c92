// frames.mjs FILE [SECONDS]: how smooth the timeline is: a scripted pan, zoom and scroll in Debian's chromium, and the gap
// between frames, the script time per frame and the time of tile requests. `node bench/ui/frames.mjs run.opw` prints one line of
// numbers in milliseconds; it never fails.
import { launch, open, serve, settle } from "../../tests/ui/browser.mjs";

const [file, seconds = "20"] = process.argv.slice(2);
const begin = performance.now();
const server = await serve([file]);
const browser = await launch();
const page = await open(browser, server);
await page.evaluate(() => (location.hash = "#/timeline"));
await page.waitForFunction(() => window.opwatchTimeline?.frames.length > 0);
const first = performance.now() - begin;
await settle(page, 500);
const result = await page.evaluate(async (ms) => {
  const c = window.opwatchTimeline;
  const gaps = [];
  const tiles = [];
  const fetched = window.fetch;
  window.fetch = async (...args) => {
    const t = performance.now();
    const answer = await fetched(...args);
    if (String(args[0]).startsWith("/api/tiles")) tiles.push(performance.now() - t);
    return answer;
  };
  c.frames.length = 0;
  const end = performance.now() + ms;
  let last = performance.now();
  let n = 0;
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
  window.fetch = fetched;
  const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0;
  return { frames: gaps.length, gap_p95: quantile(gaps, 0.95), gap_p99: quantile(gaps, 0.99), script_p50: quantile(c.frames, 0.5), script_p95: quantile(c.frames, 0.95), tile_p95: quantile(tiles, 0.95), tile_requests: tiles.length, rows: c.layout.value.lines.length };
}, Number(seconds) * 1000);
console.log(JSON.stringify({ file, first_paint: Math.round(first), ...Object.fromEntries(Object.entries(result).map(([k, v]) => [k, Math.round(v * 10) / 10])) }));
await browser.close();
await server.stop();
