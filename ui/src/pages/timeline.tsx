// timeline.tsx: the page Timeline: tracks of events on one axis of time. The keys are those of Perfetto: WASD moves and
// zooms, f fits, . and , step through a row, m marks, / searches. The address holds the range, the selection and the
// choices, so that Back undoes a move.
import { effect, signal, untracked } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson, inReport, type Table as TableData } from "../api";
import { epoch, useAnswer } from "../load";
import { address, change, param } from "../address";
import { PHASES, PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { Empty, Failure, Panel, Waiting, command, say, viewStart } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { Painter, release, sized, type Scene, axisStep, axisTime, cellAt, levelFor, readPalette, tilesOf, type Range } from "../timeline/draw";
import { FoldedSteps } from "../timeline/folded";
import { lineAt, makeLayout, type Block, type Layout } from "../timeline/layout";
import { Store, loadRows, type Rows, type Step } from "../timeline/store";
import { EventDetails, type EventInfo } from "./event";

const RANGE_LEAST = 20; // ns
const WHEEL_ZOOM = 0.0015;
const IDLE_MS = 350; // after which a move becomes an entry of the history

interface Sum {
  id: number;
  name: string;
  count: number;
  time_ns: number;
  longest: number;
  longest_ns: number;
}
/** What a device waited for: the answer of /api/gap. */
interface Gap {
  gap: boolean;
  from: number;
  to: number;
  after?: { event: number; name: string };
  launch?: { event: number; name: string };
  launched?: number;
  during: { name: string; ns: number; phase: string; track: string }[];
}
/** Links joined with an event, over any number of hops: the answer of /api/chain. */
interface LinkEnd {
  event: number;
  row: number;
  ts: number;
  end: number;
  name: string;
}
export interface Chain {
  event: number;
  links: { from: LinkEnd; to: LinkEnd }[];
  events: number;
  more: boolean;
}
interface Found {
  names: number;
  rows: Sum[];
  events?: number;
}

const sumColumns = [
  { name: "name", type: "text", unit: null },
  { name: "count", type: "int", unit: "count" },
  { name: "time_ns", type: "int", unit: "ns" },
  { name: "longest_ns", type: "int", unit: "ns" },
];

const parseRange = (text: string): Range | null => {
  const match = /^(-?\d+)-(\d+)$/.exec(text);
  return match && Number(match[2]) > Number(match[1]) ? { from: Number(match[1]), to: Number(match[2]) } : null;
};
const rangeText = (r: Range) => `${Math.round(r.from)}-${Math.round(r.to)}`;
const parseSet = (text: string) => new Set(text ? text.split(",").map(decodeURIComponent) : []);
const setText = (set: Set<string>) => [...set].map(encodeURIComponent).join(",");

/** The steps as the view has them: the same numbers as on the page Start. */
function stepsOf(table: TableData | null, rows: Rows): Step[] {
  const known = (table?.rows ?? []).filter((row) => Number(row.duration_ns) > 0 && typeof row.start_ns === "number");
  if (!known.length) return rows.steps.map(([number, start, end]) => ({ number, start, end, rank: null, phases: [], outlier: false }));
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

/** One kept store for all visits of the page: coming back shows at once what was there. */
let keptStore: Store | null = null;
let keptEpoch = 0;

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
  if (!rows || !keptStore) return <Waiting />;
  // The steps of the view come later where there are many events; until then those of the files are shown.
  keptStore.steps = shown;
  if (!rows.rows.length || rows.span_ns <= 0)
    return (
      <div class="page"><Panel title="Timeline">
        <Empty>The files have no events with times: nothing can be drawn on a timeline. A graph or a checkpoint alone has none.</Empty>
      </Panel></div>
    );
  return <Timeline store={keptStore} />;
}

declare global {
  interface Window {
    opwatchTimeline?: Controller;
  }
}

/** What can be drawn changes outside of Preact: one object draws, signals tell the parts around it. */
class Controller {
  readonly range = signal<Range>({ from: 0, to: 1 });
  readonly top = signal(0);
  readonly size = signal({ width: 800, height: 400 });
  readonly layout = signal<Layout>({ blocks: [], lines: [], height: 0 });
  readonly hover = signal<{ x: number; y: number; t: number; text: string[] } | null>(null);
  readonly area = signal<{ from: number; to: number; y0: number; y1: number } | null>(null);
  readonly selected = signal<EventInfo | null>(null);
  readonly found = signal<Found | null>(null);
  readonly findError = signal("");
  readonly chain = signal<Chain | null>(null);
  private gapTimer = 0;
  private gapAsked = 0;
  readonly problem = signal("");
  readonly painter = new Painter();
  canvas: HTMLCanvasElement | null = null;
  ruler: HTMLCanvasElement | null = null;
  mini: HTMLCanvasElement | null = null;
  // One function each, always the same: it is called when the element comes and when it goes.
  readonly refs = Object.fromEntries((["canvas", "ruler", "mini"] as const).map((name) => [name, (e: HTMLCanvasElement | null) => {
    if (!e) release(this[name]);
    this[name] = e;
  }])) as Record<"canvas" | "ruler" | "mini", (e: HTMLCanvasElement | null) => void>;
  private frame = 0;
  private palette: ReturnType<typeof readPalette> | null = null; // read again when the theme changes
  private overview = document.createElement("canvas"); // the minimap without the frame around what is in sight
  private overviewKey = "";
  private moved = 0;
  private idle = 0;
  private keys = new Set<string>();
  private lastTick = 0;
  private pointer = 0.5; // where zooming is centred, part of the width
  readonly phases = PHASES;
  frames: number[] = []; // script times of the last frames, for measurements

  constructor(public store: Store) {
    this.listen();
  }

  takeStore(store: Store) {
    const old = this.store.rows;
    const { from, to } = this.range.peek();
    const atEnd = to >= old.span_ns && !param("sel") && !param("area");
    const all = from <= 0 && atEnd;
    // A ring of the last minute begins later each time: the same moment has another number then.
    const moved = Number(BigInt(old.zero_ns || "0") - BigInt(store.rows.zero_ns || "0"));
    const grew = atEnd ? store.rows.span_ns - old.span_ns : moved;
    this.store = store;
    this.listen();
    this.overviewKey = "";
    untracked(() => {
      if (all) this.range.value = this.whole;
      else if (grew) this.range.value = { from: from + grew, to: to + grew };
    });
    this.draw();
  }

  private listen() {
    const store = this.store;
    store.onNews = () => {
      const hover = this.hover.peek();
      if (hover?.text[0] === "…") this.onHover(hover.x, hover.y); // its name came
      this.draw();
    };
    store.onError = (text) => (this.problem.value = text);
  }

  get whole(): Range {
    const span = this.store.rows.span_ns;
    return { from: -span * 0.01, to: span * 1.01 };
  }

  /** What is shown first: everything, or, where steps were recorded with long pauses between them, the first of them. */
  get first(): Range {
    const steps = this.store.steps;
    const inSteps = steps.reduce((sum, s) => sum + s.end - s.start, 0);
    return steps.length > 1 && inSteps < this.store.rows.span_ns * 0.2 ? padded({ from: steps[0].start, to: steps[0].end }, 0.02) : this.whole;
  }

  /** The page is left: the pixels go now, not when the browser collects the objects around them. */
  end() {
    cancelAnimationFrame(this.frame);
    window.clearTimeout(this.gapTimer);
    window.clearTimeout(this.idle); // its range would become one of another page
    this.keys.clear();
    release(this.overview);
    this.painter.release();
    if (window.opwatchTimeline === this) delete window.opwatchTimeline;
  }

  /** The theme changed: colours are read again. */
  repaint() {
    this.palette = null;
    this.overviewKey = "";
    this.draw();
  }

  draw() {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
  }

  private paint() {
    const g = this.canvas?.getContext("2d");
    if (!this.canvas || !g) return;
    const begin = performance.now();
    const { width, height } = this.size.value;
    const ratio = window.devicePixelRatio || 1;
    sized(this.canvas, width * ratio, height * ratio);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const range = this.range.value;
    const selected = this.selected.value;
    const matches = this.found.value ? new Set(this.found.value.rows.map((row) => row.id)) : null;
    this.palette ??= readPalette(this.canvas);
    const palette = this.palette;
    this.painter.paint(g, {
      store: this.store,
      layout: this.layout.value,
      range,
      top: this.top.value,
      width,
      height,
      matches,
      hide: param("hide") === "1",
      selected: selected && selected.row >= 0 ? { row: selected.row, ts: selected.ts, dur: selected.dur_ns ?? 0 } : null,
      arrows: this.arrows(),
      area: this.area.value,
      mark: parseRange(param("m")),
      hover: this.hover.value?.t ?? null,
      moving: performance.now() - this.moved < 150,
    }, palette);
    this.paintRuler(palette);
    this.paintMini(palette);
    this.wantTiles();
    this.frames.push(performance.now() - begin);
    if (this.frames.length > 2000) this.frames.splice(0, 1000);
    if (performance.now() - this.moved < 150) window.setTimeout(() => this.draw(), 160);
  }

  private paintRuler(palette: ReturnType<typeof readPalette>) {
    const g = this.ruler?.getContext("2d");
    if (!this.ruler || !g) return;
    const { width } = this.size.value;
    const ratio = window.devicePixelRatio || 1;
    const height = 40;
    sized(this.ruler, width * ratio, height * ratio);
    const range = this.range.value;
    const toX = (t: number) => ((t - range.from) / (range.to - range.from)) * width;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = palette.faint;
    g.strokeStyle = palette.line;
    const step = axisStep(range, width / 110);
    g.beginPath();
    for (let t = Math.ceil(range.from / step) * step; t < range.to; t += step) {
      const x = Math.round(toX(t)) + 0.5;
      g.moveTo(x, 14);
      g.lineTo(x, 20);
      g.fillText(axisTime(t, step), x + 3, 12);
    }
    g.stroke();
    this.paintRibbon(g, toX, palette);
  }

  /** The steps: the parts of their phases at the foot, their number and length above. */
  private paintRibbon(g: CanvasRenderingContext2D, toX: (t: number) => number, palette: ReturnType<typeof readPalette>) {
    const { width } = this.size.value;
    let last = -1;
    this.store.steps.forEach(({ number, start, end, phases }, i) => {
      const x0 = Math.max(-1, toX(start));
      const x1 = Math.min(width + 1, toX(end));
      if (x1 < 0 || x0 > width || x1 < last + 0.5) return; // at most two per pixel
      last = x1;
      const wide = Math.max(1, x1 - x0 - (x1 - x0 > 4 ? 1 : 0));
      g.globalAlpha = i % 2 ? 0.14 : 0.26;
      g.fillStyle = palette.faint;
      g.fillRect(x0, 22, wide, 13);
      g.globalAlpha = 1;
      let x = x0;
      const total = phases.reduce((sum, [, ns]) => sum + ns, 0);
      if (wide > 12) for (const [phase, ns] of phases) {
        g.fillStyle = PHASE_COLOURS[phase];
        g.fillRect(x, 35, (wide * ns) / total, 4);
        x += (wide * ns) / total;
      }
      if (x1 - x0 > 44) {
        g.fillStyle = palette.text;
        g.fillText(`step ${number}` + (x1 - x0 > 110 ? ` · ${format.time(end - start)}` : ""), Math.max(2, x0 + 4), 32, x1 - x0 - 6);
      }
    });
  }

  /** The step before or after the middle of what is in sight, with a little around it. */
  goToStep(direction: 1 | -1) {
    const steps = this.store.steps;
    const middle = (this.range.value.from + this.range.value.to) / 2;
    const at = steps.findIndex((s) => s.start <= middle && s.end > middle);
    const inOne = at >= 0 && this.range.value.to - this.range.value.from < 3 * (steps[at].end - steps[at].start);
    const next = inOne ? steps[at + direction] : direction > 0 ? steps.find((s) => s.start >= middle) ?? steps[0] : [...steps].reverse().find((s) => s.end <= middle) ?? steps[steps.length - 1];
    if (next) this.setRange(padded({ from: next.start, to: next.end }, 0.02), "now");
    else say(steps.length ? (direction > 0 ? "this is the last step" : "this is the first step") : "the files name no steps");
  }

  /** The whole recording, small: where the busiest rows are, and which part is in sight. */
  private paintMini(palette: ReturnType<typeof readPalette>) {
    const g = this.mini?.getContext("2d");
    if (!this.mini || !g) return;
    const { width } = this.size.value;
    const height = 22;
    sized(this.mini, width, height);
    const whole = this.whole;
    const toX = (t: number) => ((t - whole.from) / (whole.to - whole.from)) * width;
    this.paintOverview(width, height, toX, palette);
    g.clearRect(0, 0, width, height);
    g.drawImage(this.overview, 0, 0);
    g.globalAlpha = 1;
    const x0 = Math.max(0, toX(this.range.value.from));
    const x1 = Math.min(width, toX(this.range.value.to));
    g.fillStyle = palette.accent;
    g.globalAlpha = 0.18;
    g.fillRect(x0, 0, Math.max(2, x1 - x0), height);
    g.globalAlpha = 1;
    g.strokeStyle = palette.accent;
    g.strokeRect(x0 + 0.5, 0.5, Math.max(2, x1 - x0) - 1, height - 1);
  }

  private paintOverview(width: number, height: number, toX: (t: number) => number, palette: ReturnType<typeof readPalette>) {
    const level = this.store.rows.top_level;
    const bucket = 2 ** level;
    const lines = this.layout.value.lines.filter((line) => line.rows[0].depth === 0 && line.rows[0].kind === "events").slice(0, 6);
    const tiles = lines.map((line) => this.store.get(line.rows[0].row, level, 0));
    const key = [width, ...lines.map((line, i) => line.rows[0].row + (tiles[i] ? "+" : "-"))].join(" ");
    if (key === this.overviewKey) return;
    this.overviewKey = key;
    this.overview.width = width;
    this.overview.height = height;
    const g = this.overview.getContext("2d");
    if (!g) return;
    g.fillStyle = palette.faint;
    tiles.forEach((tile, i) => {
      const y = 2 + (i * (height - 4)) / Math.max(1, lines.length);
      for (let k = 0; tile?.busy && k < tile.n; k++) {
        g.globalAlpha = 0.25 + (0.75 * tile.busy[k]) / 255;
        g.fillRect(toX(tile.x[k] * bucket), y, Math.max(1, toX((tile.x[k] + tile.width[k]) * bucket) - toX(tile.x[k] * bucket)), Math.max(1, (height - 4) / Math.max(1, lines.length) - 1));
      }
    });
  }

  private wantTiles() {
    const { width, height } = this.size.value;
    const top = this.top.value;
    const { top_level, buckets, span_ns } = this.store.rows;
    const level = Math.min(levelFor(this.range.value, width), top_level);
    const range = { from: Math.max(0, this.range.value.from), to: Math.min(span_ns, this.range.value.to) };
    const visible = this.layout.value.lines.filter((line) => line.y + line.height > top && line.y < top + height);
    const keys: [number, number, number][] = [];
    if (range.to < range.from) return;
    const indexes = tilesOf(range, level, buckets);
    // The tile of everything first: it is what is drawn until others are there.
    for (const line of visible) keys.push([line.rows[0].row, top_level, 0]);
    for (const index of indexes) for (const line of visible) keys.push([line.rows[0].row, level, index]);
    const size = buckets * 2 ** level;
    const most = Math.floor(span_ns / size);
    for (const index of [Math.min(...indexes) - 1, Math.max(...indexes) + 1])
      if (index >= 0 && index <= most) for (const line of visible) keys.push([line.rows[0].row, level, index]);
    this.store.want(keys);
  }

  /** The address decided the range: a move that waits to become an entry of the history does not any more. */
  settled() {
    window.clearTimeout(this.idle);
  }

  setRange(range: Range, history: "now" | "later" | "replace" = "later") {
    const span = Math.max(RANGE_LEAST, range.to - range.from);
    const whole = this.whole;
    const widest = (whole.to - whole.from) * 1.5;
    const width = Math.min(span, widest);
    const middle = (range.from + range.to) / 2;
    const centre = Math.max(whole.from, Math.min(whole.to, middle));
    this.range.value = { from: centre - width / 2, to: centre + width / 2 };
    this.moved = performance.now();
    this.draw();
    window.clearTimeout(this.idle);
    if (history === "now") change({ t: rangeText(this.range.value) });
    else if (history === "replace") change({ t: rangeText(this.range.value) }, true);
    else if (history === "later") this.idle = window.setTimeout(() => change({ t: rangeText(this.range.value) }), IDLE_MS);
  }

  zoom(factor: number, at = this.pointer) {
    const { from, to } = this.range.value;
    const centre = from + (to - from) * at;
    const span = Math.max(RANGE_LEAST, (to - from) * factor);
    this.setRange({ from: centre - span * at, to: centre + span * (1 - at) });
  }

  pan(part: number) {
    const { from, to } = this.range.value;
    this.setRange({ from: from + (to - from) * part, to: to + (to - from) * part });
  }

  scroll(to: number) {
    const most = Math.max(0, this.layout.value.height - this.size.value.height);
    this.top.value = Math.max(0, Math.min(most, to));
    this.draw();
  }

  showRow(row: number) {
    const line = this.layout.value.lines.find((l) => l.rows[0].row === row);
    if (!line) return;
    if (line.y < this.top.value || line.y + line.height > this.top.value + this.size.value.height) this.scroll(line.y - this.size.value.height / 2);
  }

  /** Keys that move as long as they are held. */
  keyDown(key: string): boolean {
    if (!"wasd".includes(key) || key.length !== 1) return false;
    if (!this.keys.size) {
      this.lastTick = performance.now();
      requestAnimationFrame(() => this.tick());
    }
    if (!this.keys.has(key)) {
      this.keys.add(key);
      this.step(60); // also a short press moves
    }
    return true;
  }
  keyUp(key: string) {
    this.keys.delete(key);
  }
  private step(ms: number) {
    const part = ms / 1000;
    if (this.keys.has("w")) this.zoom(Math.exp(-2.2 * part));
    if (this.keys.has("s")) this.zoom(Math.exp(2.2 * part));
    if (this.keys.has("a")) this.pan(-0.9 * part);
    if (this.keys.has("d")) this.pan(0.9 * part);
  }
  private tick() {
    if (!this.keys.size) return;
    const now = performance.now();
    this.step(Math.min(100, now - this.lastTick));
    this.lastTick = now;
    requestAnimationFrame(() => this.tick());
  }

  timeAt(x: number): number {
    const { from, to } = this.range.value;
    return from + ((to - from) * x) / this.size.value.width;
  }

  /** The links of the selection: one hop, or the whole chain. */
  private arrows(): Scene["arrows"] {
    const selected = this.selected.value;
    if (!selected) return [];
    const chain = this.chain.value;
    if (chain && chain.event === selected.event) return chain.links.map((l) => ({ from: { row: l.from.row, t: l.from.end }, to: { row: l.to.row, t: l.to.ts } }));
    const end = selected.ts + Math.max(0, selected.dur_ns ?? 0);
    return selected.links.map((l) => (l.direction === "to" ? { from: { row: selected.row, t: end }, to: { row: l.row, t: l.ts } } : { from: { row: l.row, t: l.ts }, to: { row: selected.row, t: selected.ts } }));
  }

  /** In a gap of a device the tooltip says what it waited for; asked when the pointer rests. */
  private askGap(row: number, t: number) {
    const asked = ++this.gapAsked;
    window.clearTimeout(this.gapTimer);
    if (inReport()) return;
    this.gapTimer = window.setTimeout(() => {
      getJson<Gap>("/api/gap", { row, at: Math.round(t) }).then(
        (gap) => {
          const hover = this.hover.peek();
          if (gap.gap && hover && asked === this.gapAsked) this.hover.value = { ...hover, text: gapText(gap) };
        },
        () => {}, // the banner says when the server is gone
      );
    }, 120);
  }

  /** The cell under the pointer: its row, item and how many items share it. */
  cellUnder(x: number, y: number) {
    const line = lineAt(this.layout.value, y + this.top.value);
    const row = line?.rows[0];
    if (!row) return null;
    const { top_level, buckets } = this.store.rows;
    const level = Math.min(levelFor(this.range.value, this.size.value.width), top_level);
    // A pixel may be wider than a bucket: look at its neighbours, too.
    for (const dx of [0.5, 0, 1, -1, 2]) {
      const t = this.timeAt(x + dx);
      const tile = this.store.best(row.row, level, Math.floor(t / (buckets * 2 ** level)));
      if (!tile || t < 0) continue;
      const i = cellAt(tile, Math.floor(t / 2 ** tile.level) - tile.index * buckets);
      if (i >= 0) return { row, tile, i, t };
    }
    return { row, tile: null, i: -1, t: this.timeAt(x) };
  }

  onHover(x: number, y: number) {
    this.pointer = Math.max(0, Math.min(1, x / this.size.value.width));
    const at = this.cellUnder(x, y);
    const t = this.timeAt(x);
    const text: string[] = [];
    if (at?.tile && at.tile.name && at.tile.count && at.tile.item) {
      const count = at.tile.count[at.i];
      text.push(this.store.nameOf(at.tile.name[at.i]) || "…");
      if (count > 1) text.push(`${format.plural(count, "event")} begin in this pixel; the longest is shown`);
    } else if (at?.tile?.max && at.tile.min && at.tile.last) {
      text.push((at.row.name ?? "value") + ": " + format.count(at.tile.last[at.i]));
      if (at.tile.min[at.i] !== at.tile.max[at.i]) text.push(`between ${format.count(at.tile.min[at.i])} and ${format.count(at.tile.max[at.i])} here`);
    }
    this.hover.value = { x, y, t, text };
    if (!text.length && at?.row.kind === "events" && t >= 0) this.askGap(at.row.row, t);
    else this.gapAsked++;
    this.draw();
  }

  select(event: number) {
    if (inReport()) {
      say("a report has no details of single events: " + command("ui"));
      return;
    }
    this.area.value = null;
    change({ sel: "e" + event, area: "" });
  }

  async stepInRow(direction: 1 | -1) {
    const from = this.selected.value;
    if (inReport()) return;
    if (!from || from.row < 0) {
      say("select a slice first: click on it");
      return;
    }
    const next = await getJson<{ item: number }>("/api/near", { row: from.row, at: from.ts, direction });
    if (next.item) change({ sel: "e" + next.item });
    else say(direction > 0 ? "this is the last slice of its row" : "this is the first slice of its row");
  }

  fit() {
    const selected = this.selected.value;
    const area = this.area.value;
    if (area) this.setRange(padded({ from: Math.min(area.from, area.to), to: Math.max(area.from, area.to) }, 0.05), "now");
    else if (selected) this.setRange(padded({ from: selected.ts, to: selected.ts + Math.max(selected.dur_ns ?? 0, 50) }, 0.6), "now");
    else this.setRange(this.whole, "now");
  }

  mark() {
    const selected = this.selected.value;
    const area = this.area.value;
    const range = area ? { from: Math.min(area.from, area.to), to: Math.max(area.from, area.to) } : selected ? { from: selected.ts, to: selected.ts + Math.max(1, selected.dur_ns ?? 1) } : null;
    if (param("m")) change({ m: "" });
    else if (range) change({ m: rangeText(range) });
    else say("select a slice or an area first, then m marks its time");
  }

  /** Everything in sight as an area: its table is what the picture shows, for those who do not see it. */
  areaInSight() {
    const { from, to } = this.range.value;
    const keys = new Set(this.tracksOf({ y0: this.top.value, y1: this.top.value + this.size.value.height }).map((b) => b.key));
    if (keys.size) change({ area: `${Math.max(0, Math.round(from))}-${Math.round(Math.min(to, this.store.rows.span_ns + 1))}:${setText(keys)}`, sel: "" });
  }

  tracksOf(area: { y0: number; y1: number }): Block[] {
    const [y0, y1] = [Math.min(area.y0, area.y1), Math.max(area.y0, area.y1)];
    return this.layout.value.blocks.filter((b) => b.kind === "track" && b.track && b.y < y1 && b.y + b.height > y0);
  }
}

/** Sentences about a gap of a device. */
function gapText(gap: Gap): string[] {
  const next = gap.after?.name ?? "";
  const out = [`nothing runs here for ${format.time(gap.to - gap.from)}`];
  if (gap.launched !== undefined && gap.launched > gap.from) out.push(`the next, ${shortName(next)}, was launched ${format.time(gap.launched - gap.from)} after the gap began: the device waited for the host, which ran`);
  else if (gap.launched !== undefined) out.push(`the next, ${shortName(next)}, was launched ${format.time(gap.from - gap.launched)} before the gap began and waited${gap.during.length ? "; on other tracks of devices ran" : "; no other track of a device was busy"}`);
  else out.push(`what launched the next, ${shortName(next)}, is not known; threads of the host ran`);
  for (const d of gap.during.slice(0, 4)) out.push(`  ${format.time(d.ns)}  ${shortName(d.name)}${d.phase !== "unknown" ? ` (${PHASE_TITLES[d.phase] ?? d.phase})` : ""}`);
  return out;
}
const shortName = (name: string) => (name.length > 60 ? name.slice(0, 59) + "…" : name);

const padded = (r: Range, part: number): Range => ({ from: r.from - (r.to - r.from) * part, to: r.to + (r.to - r.from) * part });

function Timeline(p: { store: Store }) {
  const c = useMemo(() => new Controller(p.store), []);
  // More of the recording was read: whoever looks at its end goes on to look at its end.
  if (c.store !== p.store) c.takeStore(p.store);
  const body = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const state = address.value.params;
  const choices = useMemo(() => ({ folded: parseSet(state.fold ?? ""), pinned: parseSet(state.pin ?? "") }), [state.fold, state.pin]);

  useMemo(() => {
    c.layout.value = makeLayout(p.store.rows, choices);
  }, [choices, p.store]);
  useEffect(() => {
    c.scroll(c.top.value);
  }, [choices]);

  // The address decides the range; what the user does changes the address.
  useEffect(() => {
    const range = parseRange(state.t ?? "") ?? c.first;
    if (rangeText(range) !== rangeText(c.range.peek())) {
      c.settled();
      c.range.value = range;
      c.draw();
    }
  }, [state.t]);
  useEffect(() => {
    const id = /^e(\d+)$/.exec(state.sel ?? "")?.[1];
    if (!id) {
      c.selected.value = null;
      c.draw();
      return;
    }
    let dropped = false;
    getJson<EventInfo>("/api/event", { id }).then(
      (info) => {
        if (dropped) return;
        c.selected.value = info;
        const { from, to } = c.range.peek();
        const end = info.ts + (info.dur_ns ?? 0);
        if (end < from || info.ts > to) c.setRange({ from: info.ts - (to - from) / 2, to: info.ts + (to - from) / 2 }, "replace"); // Forward stays possible
        c.showRow(info.row);
        c.draw();
      },
      (e: Error) => say(e.message),
    );
    return () => {
      dropped = true;
    };
  }, [state.sel]);
  useEffect(() => {
    const q = state.q ?? "";
    c.findError.value = "";
    if (!q) {
      c.found.value = null;
      c.draw();
      return;
    }
    const stop = new AbortController();
    getJson<Found>("/api/search", { q }, stop.signal).then(
      (found) => {
        c.found.value = found;
        c.draw();
      },
      (e: Error) => e.name !== "AbortError" && (c.findError.value = e.message),
    );
    return () => stop.abort();
  }, [state.q]);
  useEffect(() => c.draw(), [state.hide, state.m, p.store.steps]);
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
    // An area of the address: from-to:track keys.
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
      untracked(() => c.draw());
    });
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", repaint);
      window.removeEventListener("resize", repaint);
      dispose();
      c.end();
    };
  }, []);

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
        "/": () => search.current?.focus(),
        Escape: () => change({ sel: "", area: "", q: "" }),
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
      const at = c.cellUnder(e.offsetX, e.offsetY);
      if (at?.tile?.item && at.row.kind === "events") c.select(at.tile.item[at.i]);
      else change({ sel: "", area: "" });
    } else if (d.moved && d.mode !== "pan" && c.area.value) {
      const a = c.area.value;
      const keys = new Set(c.tracksOf(a).map((b) => b.key));
      const [from, to] = [Math.max(0, Math.min(a.from, a.to)), Math.max(a.from, a.to)];
      change({ area: keys.size && to > from ? `${Math.round(from)}-${Math.round(to)}:${setText(keys)}` : "", sel: "" });
    }
  };
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
        {c.found.value && (
          <label>
            <input type="checkbox" checked={state.hide === "1"} onChange={(e) => change({ hide: e.currentTarget.checked ? "1" : "" })} /> hide others
          </label>
        )}
        <span class="spacer" />
        <RangeText c={c} />
        {p.store.steps.length > 1 && (
          <>
            <button type="button" onClick={() => c.goToStep(-1)} title="the step before ([)" aria-label="step before">‹</button>
            <span class="range">step</span>
            <button type="button" onClick={() => c.goToStep(1)} title="the next step (])" aria-label="next step">›</button>
          </>
        )}
        {p.store.steps.length > 1 && <button type="button" aria-pressed={state.steps === "1"} class={state.steps === "1" ? "on" : ""} title="lay all steps over each other" onClick={() => change({ steps: state.steps === "1" ? "" : "1" })}>fold steps</button>}
        <button type="button" onClick={() => c.fit()} title="fit the selection, or everything (f)">fit</button>
        <button type="button" onClick={() => c.setRange(c.whole, "now")} title="show everything (0)">all</button>
        <button type="button" onClick={() => c.zoom(0.5, 0.5)} title="zoom in (w)" aria-label="zoom in">+</button>
        <button type="button" onClick={() => c.zoom(2, 0.5)} title="zoom out (s)" aria-label="zoom out">−</button>
      </div>
      {c.problem.value && <Failure text={c.problem.value} />}
      {state.steps === "1" && <FoldedSteps store={p.store} layout={c.layout.value} />}
      <div class="stage" hidden={state.steps === "1"}>
        <div class="tracks">
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
        <Side c={c} />
      </div>
    </div>
  );
}

/** A component of its own: it changes with every frame of a move, the rest of the page does not. */
function RangeText(p: { c: Controller }) {
  const range = p.c.range.value;
  const step = axisStep(range, 100);
  return (
    <span class="range" title={`${rangeText(range)} ns`}>
      {axisTime(Math.max(0, range.from), step)} … {axisTime(range.to, step)} · {format.time(range.to - range.from)}
    </span>
  );
}

function Hover(p: { c: Controller }) {
  const hover = p.c.hover.value;
  if (!hover || !hover.text.length) return null;
  const right = hover.x > p.c.size.value.width * 0.6;
  return (
    <div class="hover" style={{ top: Math.min(hover.y + 18, p.c.size.value.height - 50) + "px", ...(right ? { right: p.c.size.value.width - hover.x + 8 + "px" } : { left: hover.x + 12 + "px" }) }}>
      {hover.text.map((line, i) => (
        <div key={i}>{line}</div>
      ))}
      <small>{axisTime(hover.t, axisStep(p.c.range.value, p.c.size.value.width))}</small>
    </div>
  );
}

function Labels(p: { c: Controller; toggle: (name: "fold" | "pin", key: string) => void }) {
  const { c } = p;
  const top = c.top.value;
  const { height } = c.size.value;
  const blocks = c.layout.value.blocks.filter((b) => b.y + b.height > top && b.y < top + height);
  return (
    <div class="labels" role="list" aria-label="tracks" onWheel={(e) => c.scroll(c.top.value + e.deltaY)}>
      {blocks.map((b) => (
        <div key={b.key} role="listitem" class={"label " + b.kind} style={{ top: b.y - top + "px", height: b.height + "px" }} title={b.track ? [b.title, b.track.process, b.track.device, b.track.source].filter(Boolean).join("\n") : b.title}>
          <button type="button" class="fold" aria-expanded={!b.folded} aria-label={(b.folded ? "expand " : "collapse ") + b.title} onClick={() => p.toggle("fold", b.key)}>
            {b.kind === "track" && b.row_count === 1 ? "" : b.folded ? "▸" : "▾"}
          </button>
          <span class="name">{b.title}</span>
          {b.kind === "group" ? (
            <small>{b.detail}</small>
          ) : (
            <>
              {b.busy > 0 && <small title="part of the recording in which the outermost events of this track run">{format.percent(100 * b.busy)}</small>}
              <button type="button" class={"pin" + (b.pinned ? " on" : "")} aria-pressed={b.pinned} aria-label={"pin " + b.title} onClick={() => p.toggle("pin", b.key)}>
                ⊤
              </button>
            </>
          )}
        </div>
      ))}
    </div>
  );
}

function Legend() {
  return (
    <div class="legend">
      {PHASES.filter((phase) => phase !== "unknown" && phase !== "idle").map((phase) => (
        <span key={phase} title={PHASE_TITLES[phase]}>
          <i style={{ background: PHASE_COLOURS[phase] }} />
          {PHASE_TITLES[phase]}
        </span>
      ))}
    </div>
  );
}

function Side(p: { c: Controller }) {
  const { c } = p;
  const state = address.value.params;
  const area = /^(\d+)-(\d+):(.*)$/.exec(state.area ?? "");
  if (area) return <AreaPanel c={c} from={Number(area[1])} to={Number(area[2])} keys={parseSet(area[3])} />;
  if (c.selected.value)
    return (
      <aside class="side">
        <EventDetails info={c.selected.value} chain={c.chain.value} onEvent={(id) => c.select(id)} onFit={() => c.fit()} />
      </aside>
    );
  if (c.found.value)
    return (
      <aside class="side">
        <Panel title="Search" remark={format.plural(c.found.value.names, "name")} copies={{ sql: `SELECT name, count(*) AS count, sum(dur) AS time_ns FROM event WHERE regexp_matches(name, '${(state.q ?? "").replace(/'/g, "''")}', 'i') GROUP BY name ORDER BY time_ns DESC` }}>
          {c.found.value.rows.length ? <Table label="matching names" columns={sumColumns} rows={c.found.value.rows as never} shown={["name", "count", "time_ns"]} sort="-time_ns" bar="time_ns" onOpen={(row) => c.select(Number(row.longest))} /> : <Empty>no name matches</Empty>}
        </Panel>
      </aside>
    );
  return null;
}

function AreaPanel(p: { c: Controller; from: number; to: number; keys: Set<string> }) {
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState("");
  const blocks = p.c.layout.value.blocks.filter((b) => p.keys.has(b.key) && b.track);
  const tracks = [...new Set(blocks.map((b) => b.track?.id))].join(",");
  useEffect(() => {
    setFound(null);
    if (inReport()) return;
    getJson<Found>("/api/area", { from: p.from, to: p.to, tracks }).then(setFound, (e: Error) => setError(e.message));
  }, [p.from, p.to, tracks]);
  return (
    <aside class="side">
      <Panel title="Area" remark={`${format.time(p.to - p.from)} on ${format.plural(blocks.length, "track")}`} copies={{
        command: command("op", "--time-range", `${p.from}ns:${p.to}ns`),
        sql: `SELECT name, count(*) AS count, sum(least(ts + dur, z + ${p.to}) - greatest(ts, z + ${p.from})) AS time_ns\nFROM event, (SELECT min(ts) AS z FROM event)\nWHERE track_id IN (${tracks}) AND ts < z + ${p.to} AND ts + dur > z + ${p.from}\nGROUP BY name ORDER BY time_ns DESC`,
        markdown: () => (found ? toMarkdown(sumColumns, found.rows as never) : ""),
        csv: () => (found ? toCsv(sumColumns, found.rows as never) : ""),
      }}>
        {error && <Failure text={error} />}
        {!found && !error && <Waiting />}
        {found && (
          <>
            <p class="fact">{format.plural(found.events ?? 0, "event")} of {format.plural(found.names, "name")}. Times are the parts inside the area; an event inside another counts in both.</p>
            <Table label="what is in the area" columns={sumColumns} rows={found.rows as never} shown={["name", "count", "time_ns"]} bar="time_ns" sort="-time_ns" onOpen={(row) => p.c.select(Number(row.longest))} height={24} />
          </>
        )}
      </Panel>
    </aside>
  );
}
