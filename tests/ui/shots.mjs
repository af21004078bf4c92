// shots.mjs OUT [FILE…]: pictures of every page, in two sizes, light and dark: with data, of a file with almost nothing in it (empty), of a file that was
// cut (damaged), of a job of four ranks against another (ranks), and of jobs of a daemon. `make ui-shots` runs it; look at the pictures. With files, only these.
// SETS=data,empty PAGES=start,ops FAST=1 (one size) take a part.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { launch, open, opwatch, root, serve, settle } from "./browser.mjs";

const [out = path.join(root, "build/ui-shots"), ...given] = process.argv.slice(2);
const only = process.env.PAGES?.split(",");
const sets = process.env.SETS?.split(",");
const sizes = process.env.FAST ? [[1600, 1000, "light"]] : [[1600, 1000, "light"], [1600, 1000, "dark"], [1000, 700, "light"], [1000, 700, "dark"]];
const scratch = mkdtempSync(path.join(os.tmpdir(), "opwatch-shots-"));
const sample = path.join(root, "samples/resnet.profile");
mkdirSync(out, { recursive: true });
const browser = await launch();

async function shoot(set, files, options = []) {
  if (sets && !sets.includes(set)) return;
  const server = await serve(files, options);
  for (const [width, height, colorScheme] of sizes) {
    const page = await open(browser, server, { viewport: { width, height }, colorScheme });
    const pages = await page.$$eval("nav a[href^='#/']:not(.logo)", (links) => links.map((a) => a.getAttribute("href")));
    for (const link of pages) {
      const name = link.replace("#/", "");
      if (only && !only.includes(name)) continue;
      await page.click(`nav a[href='${link}']:not(.logo)`);
      await settle(page);
      if (name === "timeline") {
        await page.mouse.click(width * 0.45, 180);
        await settle(page);
      }
      await page.screenshot({ path: path.join(out, `${set}-${name}-${width}-${colorScheme}.png`) });
    }
    if (page.problems.length) console.log(set, page.problems);
    await page.context().close();
  }
  await server.stop();
}

async function shootJobs() {
  if (sets && !sets.includes("jobs")) return;
  const socket = path.join(scratch, "socket");
  const rings = path.join(scratch, "rings");
  const children = [spawn(opwatch, ["daemon", "--socket", socket, "--dir", rings, "--no-kineto"], { stdio: "ignore" })];
  while (!existsSync(socket)) await new Promise((done) => setTimeout(done, 50));
  const work = "import time\nend = time.time() + 300\nwhile time.time() < end:\n    open('/etc/hostname').read()\n    time.sleep(0.01)\n";
  for (const name of ["train", "evaluate"]) children.push(spawn(opwatch, ["record", "--job", name, "--socket", socket, "--", "/usr/bin/python3", "-c", work], { stdio: "ignore" }));
  await new Promise((done) => setTimeout(done, 3000));
  writeFileSync(path.join(rings, "train-1-slow-120304.opw"), readFileSync(sample));
  writeFileSync(path.join(rings, "train-1-slow-120304.why.txt"), "steps take 52 % longer since 12:02:58 (121 ms to 184 ms): input went from 8.1 ms to 71 ms, most of it in enumerate(DataLoader) (7.9 ms to 70 ms per step)\n");
  writeFileSync(path.join(rings, "evaluate-2-stall-120401.why.txt"), "no step for 31 s; steps took 121 ms: process 4711 is in all_reduce (model.py:42)\n");
  await shoot("jobs", [], ["--daemon-socket", socket]);
  for (const child of children) child.kill("SIGTERM");
}

if (given.length) {
  await shoot("files", given);
} else {
  await shoot("data", [sample]);
  const empty = path.join(scratch, "empty.folded");
  writeFileSync(empty, "main 1\n");
  await shoot("empty", [empty]);
  const ranks = execFileSync("/usr/bin/python3", [path.join(root, "tests/ui/make_ranks.py"), scratch]).toString().trim().split("\n");
  const damaged = path.join(scratch, "damaged.pt.trace.json");
  const whole = readFileSync(ranks[0]);
  writeFileSync(damaged, whole.subarray(0, whole.length * 0.6));
  await shoot("damaged", [damaged]);
  await shoot("ranks", ranks, ["--base", damaged]);
  await shootJobs();
}
await browser.close();
rmSync(scratch, { recursive: true, force: true });
console.log(out);
process.exit(0);
