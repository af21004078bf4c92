// controller.ts: the state of the timeline's visible range, and the handling of pointer and keys. It lives outside of
// Preact: it draws by itself, and its signals inform the parts around the canvas of changes. The page is in
// pages/timeline.tsx.
import { signal, untracked } from "@preact/signals";
import { getJson, inReport } from "../api";
import { change, param } from "../address";
import { PHASES, PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { command, say } from "../parts/panel";
import { fromSample, fromTile, type EventInfo } from "../pages/event";
import { Painter, release, sized, type Scene, axisStep, axisTime, cellAt, levelFor, readPalette, tilesOf, type Range } from "./draw";
import { lineAt, type Block, type Layout } from "./layout";
import type { Store } from "./store";

const RANGE_LEAST = 20; // smallest visible range in ns
const IDLE_MS = 350; // after this pause a move becomes an entry of the browser history

export interface Sum {
  id: number;
  name: string;
  count: number;
  time_ns: number;
  longest: number;
  longest_ns: number;
}
/** The answer of /api/gap: what a device waited for. */
export interface Gap {
  gap: boolean;
  from: number;
  to: number;
  after?: { event: number; name: string };
  launch?: { event: number; name: string };
  launched?: number;
  during: { name: string; ns: number; phase: string; track: string }[];
}
/** The answer of /api/chain: links connected with an event, over any number of hops. */
export interface LinkEnd {
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
export interface Found {
  names: number;
  rows: Sum[];
  events?: number;
}

export const parseRange = (text: string): Range | null => {
  const match = /^(-?\d+)-(\d+)$/.exec(text);
  return match && Number(match[2]) > Number(match[1]) ? { from: Number(match[1]), to: Number(match[2]) } : null;
};
export const rangeText = (r: Range) => `${Math.round(r.from)}-${Math.round(r.to)}`;
export const parseSet = (text: string) => new Set(text ? text.split(",").map(decodeURIComponent) : []);
export const setText = (set: Set<string>) => [...set].map(encodeURIComponent).join(",");

declare global {
  interface Window {
    opwatchTimeline?: Controller;
  }
}

/** Draws the timeline outside of Preact; signals inform the parts around it of changes. */
export class Controller {
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
  // One function for each element, always the same object: Preact calls it when the element appears and when it is
  // removed.
  readonly refs = Object.fromEntries((["canvas", "ruler", "mini"] as const).map((name) => [name, (e: HTMLCanvasElement | null) => {
    if (!e) release(this[name]);
    this[name] = e;
  }])) as Record<"canvas" | "ruler" | "mini", (e: HTMLCanvasElement | null) => void>;
  private frame = 0;
  private palette: ReturnType<typeof readPalette> | null = null; // read again when the theme changes
  private overview = document.createElement("canvas"); // the minimap without the frame around the visible range
  private overviewKey = "";
  private moved = 0;
  private idle = 0;
  private keys = new Set<string>();
  private lastTick = 0;
  private pointer = 0.5; // centre of zooming, as a share of the width
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
    // A ring of the last minute begins later each time, so the same moment has another number then.
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
      if (hover?.text[0] === "…") this.onHover(hover.x, hover.y); // the name has arrived
      this.shares();
      this.draw();
    };
    store.onError = (text) => (this.problem.value = text);
  }

  get whole(): Range {
    const span = this.store.rows.span_ns;
    return { from: -span * 0.01, to: span * 1.01 };
  }

  /** The range that is shown first: everything, or, if steps were recorded with long pauses between them, the first
   * of them. */
  get first(): Range {
    const steps = this.store.steps;
    const inSteps = steps.reduce((sum, s) => sum + s.end - s.start, 0);
    return steps.length > 1 && inSteps < this.store.rows.span_ns * 0.2 ? padded({ from: steps[0].start, to: steps[0].end }, 0.02) : this.whole;
  }

  /** Called when the page is left: frees the pixels now, not when the browser collects the objects around them. */
  end() {
    cancelAnimationFrame(this.frame);
    window.clearTimeout(this.gapTimer);
    window.clearTimeout(this.sharesTimer);
    window.clearTimeout(this.idle); // else its range would be applied to another page
    this.keys.clear();
    release(this.overview);
    this.painter.release();
    if (window.opwatchTimeline === this) delete window.opwatchTimeline;
  }

  /** Called when the theme changes: colours are read again. */
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
      phase: PHASES.indexOf(param("phase")),
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

  /** Draws the steps: the shares of their phases at the foot, their number and length above. */
  private paintRibbon(g: CanvasRenderingContext2D, toX: (t: number) => number, palette: ReturnType<typeof readPalette>) {
    const { width } = this.size.value;
    let last = -1;
    const { steps, rank } = this.store.ribbon;
    steps.forEach(({ number, start, end, phases }, i) => {
      const x0 = Math.max(-1, toX(start));
      const x1 = Math.min(width + 1, toX(end));
      if (x1 < 0 || x0 > width || x1 < last + 0.5) return; // at most two steps per pixel
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
        g.fillText((rank !== null && x1 - x0 > 170 ? `rank ${rank}: ` : "") + `step ${number}` + (x1 - x0 > 110 ? ` · ${format.time(end - start)}` : ""), Math.max(2, x0 + 4), 32, x1 - x0 - 6);
      }
    });
  }

  /** The step in the middle, if it fills most of the visible range. */
  stepInSight() {
    const { from, to } = this.range.peek();
    const middle = (from + to) / 2;
    const step = this.store.ribbon.steps.find((s) => s.start <= middle && s.end > middle);
    return step && to - from < 3 * (step.end - step.start) ? step : undefined;
  }

  /** Goes to the step before or after the middle of the visible range, with a little room around it. */
  goToStep(direction: 1 | -1) {
    const { steps } = this.store.ribbon;
    const middle = (this.range.value.from + this.range.value.to) / 2;
    const at = steps.findIndex((s) => s.start <= middle && s.end > middle);
    const inOne = at >= 0 && this.range.value.to - this.range.value.from < 3 * (steps[at].end - steps[at].start);
    const next = inOne ? steps[at + direction] : direction > 0 ? steps.find((s) => s.start >= middle) ?? steps[0] : [...steps].reverse().find((s) => s.end <= middle) ?? steps[steps.length - 1];
    if (next) this.setRange(padded({ from: next.start, to: next.end }, 0.02), "now");
    else say(steps.length ? (direction > 0 ? "this is the last step" : "this is the first step") : "the files name no steps");
  }

  /** Draws the minimap: the whole recording with its busiest rows, and a frame around the visible range. */
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
    // The coarsest tile first: it is drawn until the others arrive.
    for (const line of visible) keys.push([line.rows[0].row, top_level, 0]);
    for (const index of indexes) for (const line of visible) keys.push([line.rows[0].row, level, index]);
    const size = buckets * 2 ** level;
    const most = Math.floor(span_ns / size);
    for (const index of [Math.min(...indexes) - 1, Math.max(...indexes) + 1])
      if (index >= 0 && index <= most) for (const line of visible) keys.push([line.rows[0].row, level, index]);
    this.store.want(keys);
  }

  /** Called when the address has set the range: a pending move does not become an entry of the history any more. */
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

  /** Handles keys that move as long as they are held. */
  keyDown(key: string): boolean {
    if (!"wasd".includes(key) || key.length !== 1) return false;
    if (!this.keys.size) {
      this.lastTick = performance.now();
      requestAnimationFrame(() => this.tick());
    }
    if (!this.keys.has(key)) {
      this.keys.add(key);
      this.step(60); // a short press moves, too
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

  /** In a gap of a device the tooltip shows what it waited for; requested when the pointer rests. */
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
        () => {}, // the banner reports when the server is gone
      );
    }, 120);
  }

  /** The cell under the pointer: its row, item and the number of items that share it. */
  cellUnder(x: number, y: number) {
    const line = lineAt(this.layout.value, y + this.top.value);
    const row = line?.rows[0];
    if (!row) return null;
    const { top_level, buckets } = this.store.rows;
    const level = Math.min(levelFor(this.range.value, this.size.value.width), top_level);
    // A pixel may be wider than a bucket, so its neighbours are examined, too.
    for (const dx of [0.5, 0, 1, -1, 2]) {
      const t = this.timeAt(x + dx);
      const tile = this.store.best(row.row, level, Math.floor(t / (buckets * 2 ** level)));
      if (!tile || t < 0) continue;
      const i = cellAt(tile, Math.floor(t / 2 ** tile.level) - tile.index * buckets);
      if (i >= 0) return { row, tile, i, t };
    }
    return { row, tile: null, i: -1, t: this.timeAt(x) };
  }

  hoverAgain() {
    const hover = this.hover.peek();
    if (hover) this.onHover(hover.x, hover.y);
  }

  /** How busy each track is in the visible range, 0…1, by the key of its block; computed when nothing moves. */
  readonly busy = signal(new Map<string, number>());
  private sharesTimer = 0;
  shares() {
    window.clearTimeout(this.sharesTimer);
    this.sharesTimer = window.setTimeout(() => {
      const top = this.top.peek();
      const { height, width } = this.size.peek();
      const { top_level, buckets, span_ns } = this.store.rows;
      const range = { from: Math.max(0, this.range.peek().from), to: Math.min(span_ns, this.range.peek().to) };
      const level = Math.min(levelFor(this.range.peek(), width), top_level);
      const out = new Map<string, number>();
      for (const block of this.layout.peek().blocks) {
        if (block.kind !== "track" || block.busy <= 0 || block.y + block.height < top || block.y > top + height) continue;
        const rows = block.lines.map((line) => line.rows[0]).filter((row) => row.depth === 0);
        if (range.from <= 0 && range.to >= span_ns) out.set(block.key, block.busy);
        else if (range.to > range.from) out.set(block.key, Math.min(1, rows.reduce((sum, row) => sum + this.busyOf(row.row, level, range, buckets), 0) / (range.to - range.from)));
      }
      this.busy.value = out;
    }, 120);
  }

  /** The time for which a row is busy in a range, from the loaded tiles. */
  private busyOf(row: number, level: number, range: Range, buckets: number): number {
    let ns = 0;
    for (const index of tilesOf(range, level, buckets)) {
      const tile = this.store.best(row, level, index);
      if (!tile?.busy) continue;
      const bucket = 2 ** tile.level;
      const size = buckets * 2 ** level;
      const from = Math.max(range.from, index * size); // a parent tile covers more than this one
      const to = Math.min(range.to, (index + 1) * size);
      for (let i = 0; i < tile.n; i++) {
        const start = (tile.index * buckets + tile.x[i]) * bucket;
        const part = Math.min(to, start + tile.width[i] * bucket) - Math.max(from, start);
        if (part > 0) ns += (part * tile.busy[i]) / 255;
      }
    }
    return ns;
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
    this.selectItem("e" + event);
  }

  /** Selects the item under the pointer: the facts of the tile are shown in the next frame. */
  selectAt(x: number, y: number) {
    const at = this.cellUnder(x, y);
    if (!at?.tile?.item || !at.tile.name) {
      change({ sel: "", area: "" });
      return;
    }
    const item = at.tile.item[at.i];
    const track = this.store.rows.tracks.find((t) => t.id === at.row.track);
    const bucket = 2 ** at.tile.level;
    const sampled = at.row.kind === "samples";
    this.selectItem((sampled ? "s" : "e") + item, fromTile({
      ...(sampled ? { sample: item } : { event: item }),
      row: at.row.row,
      track: at.row.track,
      name: this.store.nameOf(at.tile.name[at.i]) ?? "…",
      track_name: track?.name ?? "",
      process: track?.process ?? "",
      ts: (at.tile.index * this.store.rows.buckets + at.tile.x[at.i]) * bucket,
      dur_ns: at.tile.width[at.i] * bucket,
    }));
  }

  private selectItem(sel: string, about?: EventInfo) {
    if (inReport()) {
      say("a report has no details of single events: " + command("ui"));
      return;
    }
    this.area.value = null;
    this.show(sel, about);
    change({ sel, area: "" });
  }

  private shown = ""; // what is selected, or will be when its answer arrives

  /** Shows an event (e12) or a sample (s12) beside the timeline: the facts of the tile, then those of its row, then
   * those that need a pass over all events. */
  show(sel: string, about?: EventInfo) {
    const id = /^[es](\d+)$/.exec(sel)?.[1];
    if (sel === this.shown && (this.selected.peek() || id)) return;
    this.shown = sel;
    if (!id || inReport()) this.selected.value = null;
    else if (about) this.selected.value = about;
    this.draw();
    if (id && !inReport()) void this.ask(sel, id);
  }

  private async ask(sel: string, id: string) {
    try {
      if (sel[0] === "s") {
        const info = await getJson<EventInfo>("/api/sample", { id });
        const row = this.store.rows.rows.find((one) => one.kind === "samples" && one.track === info.track)?.row ?? -1;
        if (this.shown === sel) this.bringIntoSight(fromSample(info, row));
        return;
      }
      const facts = await getJson<EventInfo>("/api/event", { id, part: "facts" });
      if (this.shown !== sel) return;
      this.bringIntoSight({ ...facts, links: [], waits: "others" });
      const others = await getJson<Partial<EventInfo>>("/api/event", { id, part: "others" });
      if (this.shown !== sel) return;
      this.selected.value = { ...facts, links: [], ...others };
      this.draw();
    } catch (e) {
      if (this.shown === sel) say((e as Error).message);
    }
  }

  private bringIntoSight(info: EventInfo) {
    this.selected.value = info;
    const { from, to } = this.range.peek();
    const end = info.ts + (info.dur_ns ?? 0);
    // the entry of the history is kept, so that Forward stays possible
    if (end < from || info.ts > to) this.setRange({ from: info.ts - (to - from) / 2, to: info.ts + (to - from) / 2 }, "replace");
    this.showRow(info.row);
    this.draw();
  }

  async stepInRow(direction: 1 | -1) {
    const from = this.selected.value;
    if (inReport()) return;
    if (!from || from.row < 0) {
      say("select a slice first: click on it");
      return;
    }
    const next = await getJson<{ item: number }>("/api/near", { row: from.row, at: from.ts, direction });
    if (next.item) change({ sel: (from.sample !== undefined ? "s" : "e") + next.item });
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

  /** Selects everything visible as an area: its table has the content of the picture, for users who cannot see it. */
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

/** Sentences that explain a gap of a device. */
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

export const padded = (r: Range, part: number): Range => ({ from: r.from - (r.to - r.from) * part, to: r.to + (r.to - r.from) * part });
