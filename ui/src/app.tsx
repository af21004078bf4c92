// app.tsx: the frame of the page: the list of pages, the title, the palette, and the progress while files load. Each
// page is one file in pages/ and one line in PAGES.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { ApiError, getJson, inReport, post, takeToken, type State, type Table as TableData } from "./api";
import { address, change, followLinks, readAddress } from "./address";
import * as format from "./format";
import { download, epoch, forget, partOf, rangeOf, timedViews, useAnswer } from "./load";
import { baseFiles, emptyPages, files, refused, say, toast, viewStart, zero } from "./parts/panel";
import { Palette } from "./parts/palette";
import { PAGES, pageOf, type Page } from "./pages";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const state = signal<State | null>(null);
const failure = signal<{ status: number; text: string } | null>(null);

/** Whether a page is available: a report has only the pages whose answers it contains, and Compare if it was made
 * with --base. */
const isHere = (page: Page) => !inReport() || (page.inReport && (page.name !== "compare" || baseFiles.value.length > 0));

/** Whether a page is known to be empty: by the server, or since it was opened. */
const isEmpty = (page: Page, s: State) => (s.empty ?? []).includes(page.name) || emptyPages.value.has(page.name) || (page.name === "compare" && s.state === "ready" && !baseFiles.value.length && s.files.length < 2 && !address.value.params.base_rank);

/** Applies the server's state; a new epoch invalidates all answers. */
function take(now: State) {
  const old = state.value;
  files.value = now.job ? [`--job ${now.job}`] : now.files;
  baseFiles.value = now.base ?? [];
  refused.value = now.refused ?? "";
  zero.value = Number(now.start_ns ?? 0);
  viewStart.value = now.view_start_ns ?? 0;
  timedViews.value = now.parts ?? [];
  failure.value = null;
  if (old && old.epoch !== now.epoch) {
    forget();
    emptyPages.value = new Set();
  }
  if (!old || JSON.stringify({ ...old, elapsed_ns: 0 }) !== JSON.stringify({ ...now, elapsed_ns: 0 }) || now.state === "loading") state.value = now;
  if ((old?.epoch ?? 0) !== (now.epoch ?? 0)) epoch.value = now.epoch ?? 0;
}

/** Polls the server's state for ever: once a second; while files load, the server answers at the end of loading or after
 * 200 ms. So the page reports within two seconds that the server is gone or back, that a file changed, or that a
 * recording has grown.
 */
async function follow() {
  for (;;) {
    try {
      take(await getJson<State>("/api/state", state.value?.state === "loading" ? { wait: 1 } : {}, AbortSignal.timeout(1500)));
      if (inReport()) return;
    } catch (e) {
      const timedOut = (e as Error).name === "TimeoutError" || (e as Error).name === "AbortError";
      failure.value = timedOut ? { status: 0, text: "opwatch has not answered for 1.5 seconds." } : { status: (e as ApiError).status, text: (e as Error).message };
      if ((e as ApiError).status === 401 || inReport()) return;
    }
    const loading = state.value?.state === "loading" && !failure.value;
    await new Promise((done) => setTimeout(done, loading ? 0 : state.value?.state === "ready" || state.value?.state === "jobs" ? 1000 : 200));
  }
}

function Loading(p: { state: State }) {
  const s = p.state;
  const part = s.total > 0 ? s.done / s.total : 0;
  const seconds = s.elapsed_ns / 1e9;
  const left = part > 0.02 && part < 1 ? (seconds / part) * (1 - part) : null;
  return (
    <main class="loading" aria-live="polite">
      <h1>Reading {s.files.length === 1 ? format.baseName(s.files[0]) : format.plural(s.files.length, "file")}</h1>
      <progress max={1} value={part || undefined} />
      <p>
        {s.total > 0 ? `${format.bytes(s.done)} of ${format.bytes(s.total)} of ${format.baseName(s.file)}` : "looking at the files"} · {seconds.toFixed(0)} s{left !== null ? `, about ${Math.ceil(left)} s left for this file` : ""}
      </p>
      <button type="button" onClick={() => void post("/api/cancel", "")}>cancel</button>
    </main>
  );
}

/** Downloads the recording that is shown. */
async function keep(job: string) {
  try {
    await download(await post("/api/recording", ""), job);
  } catch (e) {
    say((e as Error).message);
  }
}

function Trouble(p: { title: string; text: string }) {
  return (
    <main class="loading">
      <h1>{p.title}</h1>
      <p role="alert">{p.text}</p>
    </main>
  );
}

function Frame(p: { state: State }) {
  const s = p.state;
  const page = pageOf(s.state === "jobs" ? "jobs" : address.value.page);
  const title = s.files.map(format.baseName).join(", ") || "jobs of the daemon";
  useEffect(() => {
    document.title = `${page.title} · ${title} · opwatch`;
  }, [page, title]);
  return (
    <div class="frame">
      <nav aria-label="pages">
        <a class="logo" href="#/start">opwatch</a>
        {PAGES.filter((one) => (s.state === "jobs" ? one.name === "jobs" : isHere(one))).map((one) => (
          <a key={one.name} href={"#/" + one.name} class={one === page ? "on" : ""} aria-current={one === page ? "page" : undefined}>
            {one.title}
            {one.name === "files" && s.damaged && <small class="badge">damaged</small>}
            {isEmpty(one, s) && <small class="badge nothing" title="these files have no data for this page; it says what would have">empty</small>}
          </a>
        ))}
        <span class="spacer" />
        <small>{s.version}</small>
      </nav>
      <header>
        <h1 title={s.files.join("\n")}>{title}</h1>
        {s.redacted && <span class="chip">redacted</span>}
        {s.damaged && <a class="chip warn" href="#/files">parts are damaged or missing</a>}
        {inReport() && <span class="chip">report</span>}
        {s.job && <span class={"chip" + (s.frozen ? "" : " live")}>{s.frozen ? "frozen" : "live"}</span>}
        <PartChip />
        <span class="spacer" />
        {(s.job || (s.epoch ?? 0) > 0) && <button type="button" aria-pressed={s.frozen === true} class={s.frozen ? "on" : ""} title="stop or go on with reading what is new" onClick={() => void post("/api/freeze", s.frozen ? "0" : "1").catch((e: Error) => say(e.message))}>{s.frozen ? "go on" : "freeze"}</button>}
        {s.job && <button type="button" title="save the recording that is shown as a file" onClick={() => void keep(s.job ?? "job")}>keep this</button>}
        <button type="button" onClick={() => (paletteOpen.value = true)}>Ctrl-K</button>
      </header>
      <main>
        <page.Component key={page.name === "timeline" || page.name === "sql" ? page.name : page.name + (s.epoch ?? 0)} />
      </main>
    </div>
  );
}

/** Shows the range of time that was chosen on Start and holds for all pages. */
function PartChip() {
  const range = rangeOf();
  const answer = useAnswer<TableData>(range && !inReport() ? "/api/view" : null, { name: "steps" });
  if (!range || inReport()) return null;
  const inside = (answer.value?.rows ?? []).filter((row) => Number(row.start_ns) >= range[0] && Number(row.start_ns) + Number(row.duration_ns) <= range[1]).map((row) => Number(row.step));
  const [first, last] = [Math.min(...inside), Math.max(...inside)];
  return (
    <span class="chip part">
      {inside.length > 0 && (first === last ? `step ${first} · ` : `steps ${first} to ${last} · `)}
      {partOf(range)}
      <button type="button" aria-label="show the whole recording again" title="show the whole recording again" onClick={() => change({ range: "" })}>×</button>
    </span>
  );
}

const paletteOpen = signal(false);

function App() {
  const [, tick] = useState(0);
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        paletteOpen.value = !paletteOpen.value;
        e.preventDefault();
      }
    };
    window.addEventListener("keydown", onKey);
    const timer = window.setInterval(() => state.value?.state === "loading" && tick((n) => n + 1), 1000);
    return () => {
      window.removeEventListener("keydown", onKey);
      window.clearInterval(timer);
    };
  }, []);
  const s = state.value;
  const f = failure.value;
  if (f && f.status === 401) return <Trouble title="This page needs its token" text="Open the whole address that opwatch printed; it ends with #t= and a secret. A new tab does not know it." />;
  if (!s) return f ? <Trouble title="No answer" text={f.text} /> : <main class="loading">…</main>;
  return (
    <>
      {s.state === "loading" && <Loading state={s} />}
      {s.state === "failed" && <Trouble title="The files could not be opened" text={s.error ?? ""} />}
      {(s.state === "ready" || s.state === "jobs") && <Frame state={s} />}
      {f && s.state !== "loading" ? <div class="gone" role="alert">{f.text}</div> : s.changed ? (
        <div class="gone" role="alert">
          {s.changed} {!s.job && <button type="button" onClick={() => void post("/api/again", "").catch((e: Error) => say(e.message))}>read again</button>}
        </div>
      ) : null}
      {paletteOpen.value && <Palette onClose={() => (paletteOpen.value = false)} pages={PAGES.filter(isHere)} />}
      {toast.value && <div class="toast" role="status">{toast.value}</div>}
    </>
  );
}

const embedded = document.getElementById("opwatch-report");
if (embedded) window.opwatchReport = JSON.parse(embedded.textContent ?? "{}") as Record<string, unknown>;
else takeToken();
readAddress();
window.addEventListener("popstate", readAddress);
document.addEventListener("click", followLinks);
window.addEventListener("hashchange", () => {
  if (/^#t=/.test(location.hash)) {
    takeToken(); // the address was pasted into this tab once more
    void follow();
  }
  readAddress();
});
const root = document.getElementById("app");
if (root) {
  root.textContent = "";
  render(<App />, root);
}
void follow();
