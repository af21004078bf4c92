// timeline.tsx: the page Timeline: tracks of events on one axis of time. The keys are those of Perfetto: WASD moves and
// zooms, f fits, . and , step through a row, m marks, / searches. The address holds the range, the selection and the
// choices, so that Back undoes a move.
import { effect, untracked } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson, inReport, type Table as TableData } from "../api";
import { epoch, rangeOf, useAnswer } from "../load";
import { address, change, param } from "../address";
import { PHASES } from "../colours";
import * as format from "../format";
import { Empty, Failure, Panel, Waiting, command, say, viewStart } from "../parts/panel";
import { Controller, parseRange, parseSet, rangeText, setText, type Chain, type Found } from "../timeline/controller";
import type { Range } from "../timeline/draw";
import { FoldedSteps } from "../timeline/folded";
import { GROUPINGS, makeLayout } from "../timeline/layout";
import { Hover, Labels, Legend, RangeText, Side } from "../timeline/parts";
import { PathStrip, usePath } from "../timeline/path";
import { Store, loadRows, type Rows, type Step } from "../timeline/store";

const WHEEL_ZOOM = 0.0015;

/** The steps of the view, with the same numbers as on the page Start. */
function stepsOf(table: TableData | null, rows: Rows): Step[] {
  const known = (table?.rows ?? []).filter((row) => Number(row.duration_ns) > 0 && typeof row.start_ns === "number");
  // Until the view answers, the steps of the files are used; a single one is the whole recording, which users do not
  // call a step.
  if (!known.length) return table || rows.steps.length < 2 ? [] : rows.steps.map(([number, start, end]) => ({ number, start, end, rank: null, phases: [], outlier: false }));
  return known
    .map((row) => ({
      number: Number(row.step),
      start: Number(row.start_ns) + viewStart.value,
      end: Number(row.start_ns) + Number(row.duration_ns) + viewStart.value,
      rank: typeof row.rank === "number" ? row.rank : null,
      phases: PHASES.map((phase) => [phase, Number(row[phase + "_ns"]) || 0] as [string, number]).filter(([, ns]) => ns > 0),
      outlier: row.outlier === true,
    }))
    .sort((a, b) => a.start - b.start);
}

/** One store for all visits of the page: coming back shows its content at once. */
let keptStore: Store | null = null;
let keptEpoch = 0;

/** The range of time that was chosen on Start, on the axis of the timeline. */
function chosenPart() {
  const range = rangeOf();
  return range && { from: range[0] + viewStart.value, to: range[1] + viewStart.value };
}

export function TimelinePage() {
  const [rows, setRows] = useState<Rows | null>(keptStore?.rows ?? null);
  const [error, setError] = useState("");
  const now = epoch.value;
  useEffect(() => {
    if (!rows || keptEpoch !== now)
      loadRows().then(
        async (data) => {
          const store = new Store(data);
          if (keptStore) await store.prime();
          keptEpoch = now;
          keptStore = store;
          setRows(data);
        },
        (e: Error) => setError(e.message),
      );
  }, [now]);
  const fresh = useAnswer<TableData>("/api/view", { name: "steps", epoch: now || undefined });
  const [steps, setSteps] = useState<typeof fresh>({});
  useEffect(() => {
    if (fresh.value || fresh.error) setSteps(fresh);
  }, [fresh.value, fresh.error]);
  const shown = useMemo(() => (rows ? stepsOf(steps.value ?? null, rows) : []), [steps.value, rows]);
  if (error) return <Failure text={error} />;
  if (!rows || !keptStore) return <Waiting what="The rows of the timeline are laid out." />;
  // With many events the view's steps come later; until then the steps of the files are shown.
  keptStore.steps = shown;
  if (!rows.rows.length || rows.span_ns <= 0)
    return (
      <div class="page"><Panel title="Timeline">
        <Empty page="timeline">The files have no events, samples or values with times: nothing can be drawn on a timeline. A graph, a checkpoint or sums of stacks have none.</Empty>
      </Panel></div>
    );
  return <Timeline store={keptStore} />;
}

function Timeline(p: { store: Store }) {
  const c = useMemo(() => new Controller(p.store), []);
  // More of the recording was read: a range that ended with the recording moves to its new end.
  if (c.store !== p.store) c.takeStore(p.store);
  const body = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const state = address.value.params;
  const choices = useMemo(() => ({ folded: parseSet(state.fold ?? ""), pinned: parseSet(state.pin ?? ""), group: state.group && state.group in GROUPINGS ? state.group : "" }), [state.fold, state.pin, state.group]);

  useMemo(() => {
    c.layout.value = makeLayout(p.store.rows, choices);
  }, [choices, p.store]);
  useEffect(() => {
    c.scroll(c.top.value);
  }, [choices]);

  // The address decides the range; what the user does changes the address.
  useEffect(() => {
    const range = parseRange(state.t ?? "") ?? chosenPart() ?? c.first;
    if (rangeText(range) !== rangeText(c.range.peek())) {
      c.settled();
      c.range.value = range;
      c.draw();
    }
  }, [state.t]);
  useEffect(() => {
    c.show(state.sel ?? "");
  }, [state.sel]);
  useEffect(() => {
    const q = state.q ?? "";
    const line = /^(.*):(\d+)$/.exec(state.code ?? "");
    c.findError.value = "";
    if (!q && !line) {
      c.found.value = null;
      c.draw();
      return;
    }
    const stop = new AbortController();
    getJson<Found>("/api/search", q ? { q } : { file: line?.[1], line: line?.[2] }, stop.signal).then(
      (found) => {
        c.found.value = found;
        c.draw();
      },
      (e: Error) => e.name !== "AbortError" && (c.findError.value = e.message),
    );
    return () => stop.abort();
  }, [state.q, state.code]);
  useEffect(() => c.draw(), [state.hide, state.phase, state.m, p.store.steps]);
  useEffect(() => {
    const id = /^e(\d+)$/.exec(state.sel ?? "")?.[1];
    c.chain.value = null;
    c.draw();
    if (state.flow !== "all" || !id || inReport()) return;
    getJson<Chain>("/api/chain", { id }).then(
      (chain) => {
        c.chain.value = chain;
        c.draw();
      },
      (e: Error) => say(e.message),
    );
  }, [state.sel, state.flow]);
  useEffect(() => {
    // Parses an area in the address: from-to:track keys.
    const match = /^(\d+)-(\d+):(.*)$/.exec(state.area ?? "");
    if (!match) {
      c.area.value = null;
    } else {
      const keys = parseSet(match[3]);
      const blocks = c.layout.peek().blocks.filter((b) => keys.has(b.key));
      if (blocks.length) c.area.value = { from: Number(match[1]), to: Number(match[2]), y0: Math.min(...blocks.map((b) => b.y)), y1: Math.max(...blocks.map((b) => b.y + b.height)) };
    }
    c.draw();
  }, [state.area, choices]);

  useEffect(() => {
    const element = body.current;
    if (!element) return;
    const measure = () => {
      c.size.value = { width: Math.max(50, element.clientWidth), height: Math.max(50, element.clientHeight) };
      c.hoverAgain(); // another item is under the pointer now
      c.draw();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => c.repaint();
    dark.addEventListener("change", repaint);
    window.addEventListener("resize", repaint); // also sent when the palette changes the theme
    window.opwatchTimeline = c; // for measurements
    const dispose = effect(() => {
      void c.range.value;
      void c.top.value;
      void c.layout.value;
      untracked(() => {
        c.shares();
        c.draw();
      });
    });
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", repaint);
      window.removeEventListener("resize", repaint);
      dispose();
      c.end();
    };
  }, []);

  const togglePath = () => !inReport() && change({ path: param("path") ? "" : String(c.stepInSight()?.number ?? "on") });
  useEffect(() => {
    const down = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      const actions: Record<string, () => void> = {
        f: () => c.fit(),
        "0": () => c.setRange(c.whole, "now"),
        ".": () => void c.stepInRow(1),
        ",": () => void c.stepInRow(-1),
        m: () => c.mark(),
        e: () => c.areaInSight(),
        "]": () => c.goToStep(1),
        "[": () => c.goToStep(-1),
        p: togglePath,
        "/": () => search.current?.focus(),
        Escape: () => change(param("sel") || param("area") || param("q") || param("code") || param("phase") ? { sel: "", area: "", q: "", code: "", phase: "" } : { path: "" }),
        ArrowLeft: () => c.pan(-0.2),
        ArrowRight: () => c.pan(0.2),
        ArrowUp: () => c.scroll(c.top.value - 60),
        ArrowDown: () => c.scroll(c.top.value + 60),
        PageUp: () => c.scroll(c.top.value - c.size.value.height),
        PageDown: () => c.scroll(c.top.value + c.size.value.height),
        "+": () => c.zoom(0.7),
        "-": () => c.zoom(1 / 0.7),
      };
      const inGrid = target.closest?.(".table") !== null && /^(Arrow|Page)/.test(e.key);
      if (inGrid) return;
      if (c.keyDown(e.key.toLowerCase())) e.preventDefault();
      else if (actions[e.key]) {
        actions[e.key]();
        e.preventDefault();
      }
    };
    const up = (e: KeyboardEvent) => c.keyUp(e.key.toLowerCase());
    window.addEventListener("keydown", down);
    window.addEventListener("keyup", up);
    return () => {
      window.removeEventListener("keydown", down);
      window.removeEventListener("keyup", up);
    };
  }, []);

  const onWheel = (e: WheelEvent) => {
    e.preventDefault();
    const scrolls = c.layout.value.height > c.size.value.height;
    if (e.ctrlKey || e.metaKey || (!scrolls && !e.shiftKey && Math.abs(e.deltaX) < Math.abs(e.deltaY))) c.zoom(Math.exp(e.deltaY * WHEEL_ZOOM), e.offsetX / c.size.value.width);
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) c.pan((e.deltaX || e.deltaY) / c.size.value.width);
    else c.scroll(c.top.value + e.deltaY);
  };
  useEffect(() => {
    const element = body.current;
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);

  const drag = useRef<{ x: number; y: number; range: Range; top: number; mode: "pan" | "area" | "ruler"; moved: boolean } | null>(null);
  const startDrag = (e: PointerEvent, mode: "pan" | "area" | "ruler") => {
    if (e.button !== 0 || (inReport() && mode !== "pan")) return;
    (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
    drag.current = { x: e.offsetX, y: e.offsetY, range: c.range.value, top: c.top.value, mode, moved: false };
  };
  const onMove = (e: PointerEvent) => {
    const d = drag.current;
    if (!d) {
      c.onHover(e.offsetX, e.offsetY);
      return;
    }
    if (Math.abs(e.offsetX - d.x) + Math.abs(e.offsetY - d.y) > 4) d.moved = true;
    if (!d.moved) return;
    if (d.mode === "pan") {
      const scale = (d.range.to - d.range.from) / c.size.value.width;
      c.setRange({ from: d.range.from - (e.offsetX - d.x) * scale, to: d.range.to - (e.offsetX - d.x) * scale });
      c.scroll(d.top - (e.offsetY - d.y));
    } else {
      const all = d.mode === "ruler";
      c.area.value = { from: c.timeAt(d.x), to: c.timeAt(e.offsetX), y0: all ? 0 : d.y + c.top.value, y1: all ? c.layout.value.height : e.offsetY + c.top.value };
      c.draw();
    }
  };
  const endDrag = (e: PointerEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d) return;
    if (!d.moved && d.mode !== "ruler") {
      c.selectAt(e.offsetX, e.offsetY);
    } else if (d.moved && d.mode !== "pan" && c.area.value) {
      const a = c.area.value;
      const keys = new Set(c.tracksOf(a).map((b) => b.key));
      const [from, to] = [Math.max(0, Math.min(a.from, a.to)), Math.max(a.from, a.to)];
      change({ area: keys.size && to > from ? `${Math.round(from)}-${Math.round(to)}:${setText(keys)}` : "", sel: "" });
    }
  };
  const path = usePath(c);
  const toggle = (name: "fold" | "pin", key: string) => {
    const set = parseSet(param(name));
    if (!set.delete(key)) set.add(key);
    change({ [name]: setText(set) });
  };

  return (
    <div class="timeline">
      <div class="bar">
        {inReport() && (
          <span class="fact">
            coarse: the report holds {Number(window.opwatchReport?.left_out_rows) > 0 ? `not all rows (${window.opwatchReport?.left_out_rows} are left out) and ` : ""}steps of {format.time(2 ** Number(window.opwatchReport?.level ?? 0))}; all of it: <code>{command("ui")}</code>
          </span>
        )}
        <input hidden={inReport()} ref={search} type="search" aria-label="search names (regular expression)" placeholder="/ search names (regex)" value={state.q ?? ""} onInput={(e) => change({ q: e.currentTarget.value }, true)} onKeyDown={(e) => {
          if (e.key === "Escape") e.currentTarget.blur();
          if (e.key === "Enter" && c.found.value?.rows.length) {
            c.select(c.found.value.rows[0].longest);
            e.currentTarget.blur();
          }
        }} />
        {c.findError.value && <span class="failure">{c.findError.value}</span>}
        {state.code && !state.q && (
          <span class="chip part" title={state.code}>
            of {format.baseName(state.code)}
            <button type="button" aria-label="show events of all lines again" onClick={() => change({ code: "" })}>×</button>
          </span>
        )}
        {c.found.value && (
          <label>
            <input type="checkbox" checked={state.hide === "1"} onChange={(e) => change({ hide: e.currentTarget.checked ? "1" : "" })} /> hide others
          </label>
        )}
        <span class="spacer" />
        <label class="grouping">
          <span>by </span>
          <select aria-label="group tracks by" value={choices.group} onChange={(e) => change({ group: e.currentTarget.value, fold: "" })}>
            {Object.entries(GROUPINGS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
        </label>
        <RangeText c={c} />
        {p.store.steps.length > 1 && (
          <>
            <button type="button" onClick={() => c.goToStep(-1)} title="the step before ([)" aria-label="step before">‹</button>
            <span class="range">step</span>
            <button type="button" onClick={() => c.goToStep(1)} title="the next step (])" aria-label="next step">›</button>
          </>
        )}
        {p.store.steps.length > 1 && <button type="button" aria-pressed={state.steps === "1"} class={state.steps === "1" ? "on" : ""} title="lay all steps over each other" onClick={() => change({ steps: state.steps === "1" ? "" : "1" })}>fold steps</button>}
        {!inReport() && p.store.rows.rows.some((row) => row.kind === "events") && <button type="button" aria-pressed={path !== null} class={path ? "on" : ""} title="what the step in sight waited for, one after the other (p)" onClick={togglePath}>critical path</button>}
        <button type="button" onClick={() => c.fit()} title="fit the selection, or everything (f)">fit</button>
        <button type="button" onClick={() => c.setRange(c.whole, "now")} title="show everything (0)">all</button>
        <button type="button" onClick={() => c.zoom(0.5, 0.5)} title="zoom in (w)" aria-label="zoom in">+</button>
        <button type="button" onClick={() => c.zoom(2, 0.5)} title="zoom out (s)" aria-label="zoom out">−</button>
      </div>
      {c.problem.value && <Failure text={c.problem.value} />}
      {state.steps === "1" && <FoldedSteps store={p.store} layout={c.layout.value} />}
      <div class="stage" hidden={state.steps === "1"}>
        <div class={"tracks" + (path ? " with-path" : "")}>
          <div class="corner">
            <Legend />
          </div>
          <canvas class="mini" ref={c.refs.mini} aria-hidden="true" onPointerDown={(e) => {
            const whole = c.whole;
            const t = whole.from + ((whole.to - whole.from) * e.offsetX) / c.size.value.width;
            const half = (c.range.value.to - c.range.value.from) / 2;
            c.setRange({ from: t - half, to: t + half }, "now");
          }} />
          <canvas class="ruler" ref={c.refs.ruler} aria-hidden="true" title="drag to select a range of time" onPointerDown={(e) => startDrag(e, "ruler")} onPointerMove={onMove} onPointerUp={endDrag} />
          {path && <PathStrip c={c} path={path} />}
          <Labels c={c} toggle={toggle} />
          <div class="body" ref={body}>
            <canvas
              ref={c.refs.canvas}
              tabIndex={0}
              role="application"
              aria-label="timeline; select an area for a table of what is in it"
              onPointerDown={(e) => startDrag(e, e.shiftKey ? "area" : "pan")}
              onPointerMove={onMove}
              onPointerUp={endDrag}
              onPointerLeave={() => {
                c.hover.value = null;
                c.draw();
              }}
            />
            <Hover c={c} />
          </div>
        </div>
        <Side c={c} path={path} />
      </div>
    </div>
  );
}
