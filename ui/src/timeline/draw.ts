// draw.ts: paints the timeline. A row is a strip of pixels, one pixel high, that is stretched to its height: the cost
// does not depend on the number of events. Labels and counters are drawn on top.
import { TINTS, css, isLight, parse, type Rgb } from "../colours";
import * as format from "../format";
import type { Layout, Line } from "./layout";
import type { Store, Tile, TileRow } from "./store";

export interface Range {
  from: number;
  to: number; // nanoseconds since the first item
}
export interface Scene {
  store: Store;
  layout: Layout;
  range: Range;
  top: number; // first visible pixel of the layout
  width: number;
  height: number;
  matches: Set<number> | null; // ids of names; others are dimmed
  phase: number; // number of the phase that is shown, -1 for all; others are dimmed, too
  hide: boolean; // … or left out
  selected: { row: number; ts: number; dur: number } | null;
  arrows: { from: { row: number; t: number }; to: { row: number; t: number } }[];
  area: { from: number; to: number; y0: number; y1: number } | null;
  mark: Range | null;
  hover: number | null; // a time, or null
  moving: boolean;
}

export interface Palette {
  background: Rgb;
  text: string;
  faint: string;
  line: string;
  accent: string;
}

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return { background: parse(value("--canvas")), text: value("--text"), faint: value("--faint"), line: value("--line"), accent: value("--accent") };
}

const LABELS_MOST = 300;
const LABELS_MOVING = 80;

export const levelFor = (range: Range, width: number) => Math.max(0, Math.floor(Math.log2((range.to - range.from) / Math.max(1, width))));

/** The tiles that a range needs, those in the middle first. */
export function tilesOf(range: Range, level: number, buckets: number): number[] {
  const size = buckets * 2 ** level;
  const first = Math.max(0, Math.floor(range.from / size));
  const last = Math.max(first, Math.floor(range.to / size));
  const middle = (first + last) / 2;
  return Array.from({ length: Math.min(64, last - first + 1) }, (_, i) => first + i).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
}

interface Label {
  x: number;
  width: number;
  y: number;
  height: number;
  name: number;
  tint: number;
}

/** Frees the pixels of a canvas at once; they are not in the heap that the garbage collector watches. */
export function release(canvas: HTMLCanvasElement | null) {
  if (canvas) canvas.width = canvas.height = 0;
}

/** Sets the size of a canvas; if it is unchanged the pixels are kept, because each new size is a new allocation. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number) {
  if (canvas.width !== Math.round(width)) canvas.width = Math.round(width);
  if (canvas.height !== Math.round(height)) canvas.height = Math.round(height);
}

export class Painter {
  private strip = document.createElement("canvas");
  private image: ImageData | null = null;

  release() {
    release(this.strip);
    this.image = null;
  }

  /** Paints the cells of a row into line `line` of the strip; returns labels. */
  private paintRow(scene: Scene, row: TileRow, pixels: Uint32Array, weight: Uint8Array, offset: number, width: number, background: Rgb, y: number, height: number, labels: Label[]) {
    const { store, range } = scene;
    const level = Math.min(levelFor(range, width), store.rows.top_level);
    const buckets = store.rows.buckets;
    const perPixel = (range.to - range.from) / width;
    const size = buckets * 2 ** level;
    // The current run of cells of one item; an object per cell would keep the garbage collector busy.
    let [runX, runEnd, runName, runTint, runItem] = [0, 0, 0, 0, -1];
    const endRun = () => {
      if (runItem >= 0 && runEnd - runX > 24) labels.push({ x: runX, width: runEnd - runX, y, height, name: runName, tint: runTint });
      runItem = -1;
    };
    let done = -1; // the last parent drawn, because several children share it
    weight.fill(0);
    const first = Math.max(0, Math.floor(range.from / size));
    const last = Math.max(first, Math.floor(Math.min(range.to, store.rows.span_ns) / size));
    for (let index = first; index <= last; index++) {
      const tile = store.best(row.row, level, index);
      if (!tile || !tile.item || !tile.busy || !tile.tint || !tile.name) continue;
      if (tile.level !== level) {
        const id = tile.level * 1e9 + tile.index;
        if (id === done) continue;
        done = id;
      }
      const bucket = 2 ** tile.level;
      const start = tile.index * buckets * bucket;
      for (let i = 0; i < tile.n; i++) {
        const from = (start + tile.x[i] * bucket - range.from) / perPixel;
        const to = from + (tile.width[i] * bucket) / perPixel;
        if (to < 0 || from >= width) continue;
        const matches = (!scene.matches || scene.matches.has(tile.name[i])) && (scene.phase < 0 || (tile.tint?.[i] ?? 0) >> 4 === scene.phase);
        if (!matches && scene.hide) continue;
        const busy = tile.busy[i];
        const c = TINTS[tile.tint[i]];
        // A sparse bucket is still visible: at least a fifth of its colour.
        const part = (matches ? 0.25 + (0.75 * busy) / 255 : 0.12);
        const r = background[0] + (c[0] - background[0]) * part;
        const g = background[1] + (c[1] - background[1]) * part;
        const b = background[2] + (c[2] - background[2]) * part;
        const colour = (255 << 24) | (b << 16) | (g << 8) | r;
        const x0 = Math.max(0, Math.floor(from));
        const x1 = Math.min(width, Math.max(x0 + 1, Math.round(to)));
        for (let x = x0; x < x1; x++)
          if (busy >= weight[x]) {
            weight[x] = busy;
            pixels[offset + x] = colour;
          }
        if (matches && tile.item[i] === runItem && x0 <= runEnd + 1) runEnd = x1;
        else {
          endRun();
          // The first pixel of an item is darker, so that neighbours of one colour can be distinguished.
          if (x1 - x0 > 3 && from >= 0) pixels[offset + x0] = (255 << 24) | ((b * 0.72) << 16) | ((g * 0.72) << 8) | (r * 0.72);
          if (matches) {
            runX = x0;
            runEnd = x1;
            runName = tile.name[i];
            runTint = tile.tint[i];
            runItem = tile.item[i];
          }
        }
      }
    }
    endRun();
  }

  private paintCounter(g: CanvasRenderingContext2D, scene: Scene, row: TileRow, y: number, height: number, palette: Palette) {
    const { store, range, width } = scene;
    const level = Math.min(levelFor(range, width), store.rows.top_level);
    const buckets = store.rows.buckets;
    const top = store.best(row.row, store.rows.top_level, 0);
    const scale = (range.to - range.from) / width;
    let least = 0;
    let most = 0;
    for (let i = 0; top?.max && top.min && i < top.n; i++) {
      most = Math.max(most, top.max[i]);
      least = Math.min(least, top.min[i]);
    }
    if (most === least) most = least + 1;
    const toY = (value: number) => y + height - 2 - ((value - least) / (most - least)) * (height - 6);
    const size = buckets * 2 ** level;
    let lastX = -1e9;
    let firstX = 0;
    let lastY = toY(0);
    let done = -1;
    g.fillStyle = palette.accent;
    g.strokeStyle = palette.accent;
    g.globalAlpha = 0.75;
    g.beginPath();
    const first = Math.max(0, Math.floor(range.from / size) - 1);
    const last = Math.floor(Math.min(range.to, store.rows.span_ns) / size);
    for (let index = first; index <= last; index++) {
      const tile = store.best(row.row, level, index);
      if (!tile?.min || !tile.max || !tile.last) continue;
      const id = tile.level * 1e9 + tile.index;
      if (id === done) continue;
      done = id;
      const bucket = 2 ** tile.level;
      for (let i = 0; i < tile.n; i++) {
        const x = ((tile.index * buckets + tile.x[i]) * bucket - range.from) / scale;
        if (lastX > -1e8) g.lineTo(x, lastY);
        else {
          firstX = x;
          g.moveTo(x, toY(tile.max[i]));
        }
        g.lineTo(x, toY(tile.max[i]));
        if (tile.min[i] !== tile.max[i]) g.lineTo(x, toY(tile.min[i]));
        lastX = x;
        lastY = toY(tile.last[i]);
        g.lineTo(x, lastY);
      }
    }
    if (lastX > -1e8) g.lineTo(Math.min(width, (row.end - range.from) / scale + 1), lastY);
    g.stroke();
    if (lastX > -1e8) {
      g.lineTo(Math.min(width, (row.end - range.from) / scale + 1), toY(Math.max(least, Math.min(0, most))));
      g.lineTo(firstX, toY(Math.max(least, Math.min(0, most))));
      g.globalAlpha = 0.18;
      g.fill();
    }
    g.globalAlpha = 1;
    g.fillStyle = palette.text;
    g.font = "10px system-ui, sans-serif";
    g.fillText(/memory|bytes/i.test(row.name ?? "") ? format.bytes(most) : format.count(most), 2, y + 10);
  }

  paint(g: CanvasRenderingContext2D, scene: Scene, palette: Palette) {
    const { layout, width, height } = scene;
    const lines = layout.lines.filter((line) => line.y + line.height > scene.top && line.y < scene.top + height);
    const events = lines.filter((line) => line.rows[0].kind === "events" || line.rows[0].kind === "samples");
    const labels: Label[] = [];
    const background = palette.background;

    g.fillStyle = css(background);
    g.fillRect(0, 0, width, height);
    this.paintSteps(g, scene, palette);
    if (events.length && width > 0) {
      if (!this.image || this.image.width !== width || this.image.height < events.length) {
        this.image = new ImageData(width, Math.max(events.length, 64));
        this.strip.width = width;
        this.strip.height = this.image.height;
      }
      const pixels = new Uint32Array(this.image.data.buffer);
      const weight = new Uint8Array(width);
      pixels.fill(0, 0, events.length * width);
      events.forEach((line, i) => this.paintRow(scene, line.rows[0], pixels, weight, i * width, width, background, line.y - scene.top, line.height, labels));
      this.strip.getContext("2d")?.putImageData(this.image, 0, 0, 0, 0, width, events.length);
      g.imageSmoothingEnabled = false;
      events.forEach((line, i) => g.drawImage(this.strip, 0, i, width, 1, 0, line.y - scene.top, width, line.height - 1));
    }
    for (const line of lines) if (line.rows[0].kind === "counter" || line.rows[0].kind === "series") this.paintCounter(g, scene, line.rows[0], line.y - scene.top, line.height, palette);
    this.paintLabels(g, scene, labels);
    this.paintOverlay(g, scene, palette);
  }

  /** Draws one row at several ranges of the same length, a line each; a stroke marks the end of each step. */
  paintFolded(g: CanvasRenderingContext2D, store: Store, row: TileRow, ranges: (Range & { end: number })[], width: number, height: number, palette: Palette) {
    const pixels = new ImageData(width, ranges.length);
    const weight = new Uint8Array(width);
    const words = new Uint32Array(pixels.data.buffer);
    const labels: Label[] = [];
    const base = { store, layout: { blocks: [], lines: [], height: 0 }, top: 0, width, height, matches: null, phase: -1, hide: false, selected: null, arrows: [], area: null, mark: null, hover: null, moving: false };
    g.fillStyle = css(palette.background);
    g.fillRect(0, 0, width, height * ranges.length + 18);
    ranges.forEach((range, i) => this.paintRow({ ...base, range }, row, words, weight, i * width, width, palette.background, i * height, height, labels));
    sized(this.strip, width, ranges.length);
    this.strip.getContext("2d")?.putImageData(pixels, 0, 0);
    this.image = null;
    g.imageSmoothingEnabled = false;
    ranges.forEach((range, i) => {
      g.drawImage(this.strip, 0, i, width, 1, 0, i * height + 1, width, height - 3);
      const x = ((range.end - range.from) / (range.to - range.from)) * width;
      // The part after the end belongs to the next step and is drawn faint.
      g.globalAlpha = 0.75;
      g.fillStyle = css(palette.background);
      g.fillRect(x, i * height, width - x, height);
      g.globalAlpha = 1;
      g.fillStyle = palette.text;
      g.fillRect(Math.min(width - 2, x), i * height + 1, 2, height - 3);
    });
    this.paintLabels(g, { ...base, range: ranges[0] }, labels);
  }

  private paintSteps(g: CanvasRenderingContext2D, scene: Scene, palette: Palette) {
    const { steps } = scene.store.ribbon;
    const scale = scene.width / (scene.range.to - scene.range.from);
    const inSight = steps.filter((step) => step.end > scene.range.from && step.start < scene.range.to).length;
    if (inSight > scene.width / 40) return; // lines everywhere would show nothing
    g.strokeStyle = palette.line;
    g.beginPath();
    let last = -10;
    for (const { start } of steps) {
      const x = Math.round((start - scene.range.from) * scale) + 0.5;
      if (x < 0 || x > scene.width || x - last < 4) continue;
      g.moveTo(x, 0);
      g.lineTo(x, scene.height);
      last = x;
    }
    g.stroke();
  }

  private paintLabels(g: CanvasRenderingContext2D, scene: Scene, labels: Label[]) {
    const most = scene.moving ? LABELS_MOVING : LABELS_MOST;
    const chosen = labels.length > most ? [...labels].sort((a, b) => b.width - a.width).slice(0, most) : labels;
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (const label of chosen) {
      const name = scene.store.nameOf(label.name);
      if (!name) continue;
      const room = Math.floor((label.width - 8) / 6);
      if (room < 2) continue;
      const text = shorten(name, room);
      g.fillStyle = isLight(TINTS[label.tint]) ? "#10151c" : "#ffffff";
      g.fillText(text, label.x + 4, label.y + label.height / 2, label.width - 6);
    }
    g.textBaseline = "alphabetic";
  }

  private paintArrows(g: CanvasRenderingContext2D, scene: Scene, palette: Palette, toX: (t: number) => number, lineOf: (row: number) => Line | undefined) {
    g.strokeStyle = palette.accent;
    g.fillStyle = palette.accent;
    g.lineWidth = 1.5;
    for (const arrow of scene.arrows) {
      const [a, b] = [lineOf(arrow.from.row), lineOf(arrow.to.row)];
      if (!a || !b) continue;
      const from = [toX(arrow.from.t), a.y - scene.top + a.height / 2];
      const to = [toX(arrow.to.t), b.y - scene.top + b.height / 2];
      const bend = Math.max(20, Math.min(200, Math.abs(to[0] - from[0]) / 2));
      g.beginPath();
      g.moveTo(from[0], from[1]);
      g.bezierCurveTo(from[0] + bend, from[1], to[0] - bend, to[1], to[0], to[1]);
      g.stroke();
      g.beginPath();
      g.moveTo(to[0], to[1]);
      g.lineTo(to[0] - 7, to[1] - 4);
      g.lineTo(to[0] - 7, to[1] + 4);
      g.fill();
    }
    g.lineWidth = 1;
  }

  private paintOverlay(g: CanvasRenderingContext2D, scene: Scene, palette: Palette) {
    const { range, width, height, layout } = scene;
    const toX = (t: number) => ((t - range.from) / (range.to - range.from)) * width;
    const lineOf = (row: number) => layout.lines.find((line) => line.rows[0].row === row);

    if (scene.mark) {
      g.fillStyle = palette.accent;
      g.globalAlpha = 0.1;
      g.fillRect(toX(scene.mark.from), 0, Math.max(1, toX(scene.mark.to) - toX(scene.mark.from)), height);
      g.globalAlpha = 1;
    }
    if (scene.area) {
      const y0 = Math.min(scene.area.y0, scene.area.y1) - scene.top;
      const y1 = Math.max(scene.area.y0, scene.area.y1) - scene.top;
      const [x0, x1] = [toX(Math.min(scene.area.from, scene.area.to)), toX(Math.max(scene.area.from, scene.area.to))];
      g.fillStyle = palette.accent;
      g.globalAlpha = 0.14;
      g.fillRect(x0, y0, x1 - x0, y1 - y0);
      g.globalAlpha = 1;
      g.strokeStyle = palette.accent;
      g.strokeRect(Math.round(x0) + 0.5, Math.round(y0) + 0.5, Math.round(x1 - x0), Math.round(y1 - y0));
    }
    if (scene.selected) {
      const line = lineOf(scene.selected.row);
      if (line) {
        const x0 = toX(scene.selected.ts);
        const x1 = Math.max(x0 + 3, toX(scene.selected.ts + Math.max(0, scene.selected.dur)));
        const y = line.y - scene.top;
        g.strokeStyle = palette.text;
        g.lineWidth = 2;
        g.strokeRect(Math.max(-5, x0), y, Math.min(width + 10, x1) - Math.max(-5, x0), line.height - 1);
        g.lineWidth = 1;
      }
      this.paintArrows(g, scene, palette, toX, lineOf);
    }
    if (scene.hover !== null) {
      const x = Math.round(toX(scene.hover)) + 0.5;
      g.strokeStyle = palette.faint;
      g.globalAlpha = 0.5;
      g.beginPath();
      g.moveTo(x, 0);
      g.lineTo(x, height);
      g.stroke();
      g.globalAlpha = 1;
    }
  }
}

function shorten(name: string, room: number): string {
  if (name.length <= room) return name;
  const slash = name.lastIndexOf("/");
  if (slash > 0 && name.length - slash <= room + 2 && name.length - slash > 3) return "…" + name.slice(name.length - room + 1);
  return name.slice(0, Math.max(1, room - 1)) + "…";
}

/** The distance of ticks on an axis: 1, 2 or 5 times a power of ten, so that about `ticks` fit. */
export function axisStep(range: Range, ticks: number): number {
  const raw = (range.to - range.from) / Math.max(1, ticks);
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = raw / power;
  return (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10) * power;
}

/** Formats a time on an axis with as many digits as the distance of ticks needs. */
export function axisTime(ns: number, step: number): string {
  const [factor, unit] = Math.abs(ns) >= 1e9 || step >= 1e9 ? [1e9, "s"] : Math.abs(ns) >= 1e6 || step >= 1e6 ? [1e6, "ms"] : Math.abs(ns) >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  return (ns / factor).toFixed(decimals) + " " + unit;
}

export function cellAt(tile: Tile, bucket: number): number {
  for (let i = 0; i < tile.n; i++) if (bucket >= tile.x[i] && bucket < tile.x[i] + tile.width[i]) return i;
  return -1;
}
