// store.ts: the cache of timeline tiles in the browser: requests them in batches, keeps 64 MB of them, and always has
// something to draw: while a tile is loading its parent is drawn in its place. Names of events are also requested by
// id, in batches.
import { getJson, inReport, post } from "../api";

export interface TileRow {
  row: number;
  kind: "events" | "samples" | "counter" | "series";
  track: number;
  depth: number;
  lane: number;
  items: number;
  start: number;
  end: number;
  busy_ns: number;
  name?: string;
}
export interface Track {
  id: number;
  kind: string;
  rank: number;
  pid?: number;
  tid?: number;
  sort: number;
  process_sort: number;
  name: string;
  process: string;
  device: string;
  source: string;
}
export interface Rows {
  zero_ns: string; // ns since 1970
  span_ns: number;
  top_level: number;
  buckets: number;
  rows: TileRow[];
  tracks: Track[];
  phases: string[];
  steps: [number, number, number][];
}

/** A step of the view `steps`, on the axis of the timeline. */
export interface Step {
  number: number;
  start: number;
  end: number;
  rank: number | null;
  phases: [string, number][];
  outlier: boolean;
}

export interface Tile {
  row: number;
  level: number;
  index: number;
  n: number;
  x: Uint16Array;
  width: Uint16Array;
  item?: Uint32Array;
  name?: Uint32Array;
  count?: Uint32Array;
  busy?: Uint8Array;
  tint?: Uint8Array;
  min?: Float64Array;
  max?: Float64Array;
  last?: Float64Array;
  bytes: number;
}

const BYTES_MOST = 64 << 20;
const NAMES_MOST = 100000;
const BATCH = 64;

/** Decodes what add_tile in src/page/timeline.c writes. Each tile gets its own copy: a view would keep the whole
 * answer as long as one of its tiles. */
export function decode(buffer: ArrayBuffer): Tile[] {
  const view = new DataView(buffer);
  const tiles: Tile[] = [];
  let at = 0;
  const take = <T>(type: { new (b: ArrayBuffer, o: number, n: number): T; BYTES_PER_ELEMENT: number }, n: number): T => {
    const size = type.BYTES_PER_ELEMENT;
    at = Math.ceil(at / size) * size;
    const column = new type(buffer.slice(at, at + n * size), 0, n);
    at += n * size;
    return column;
  };
  while (at < buffer.byteLength) {
    const begin = at;
    const index = view.getFloat64(at, true);
    const [row, level, n, kind] = [8, 12, 16, 20].map((o) => view.getUint32(begin + o, true));
    at += 24;
    const tile = { row, level, index, n } as Tile;
    if (kind >= 2) {
      tile.min = take(Float64Array, n);
      tile.max = take(Float64Array, n);
      tile.last = take(Float64Array, n);
    } else {
      tile.item = take(Uint32Array, n);
      tile.name = take(Uint32Array, n);
      tile.count = take(Uint32Array, n);
    }
    tile.x = take(Uint16Array, n);
    tile.width = take(Uint16Array, n);
    if (kind < 2) {
      tile.busy = take(Uint8Array, n);
      tile.tint = take(Uint8Array, n);
    }
    at = Math.ceil(at / 8) * 8;
    tile.bytes = at - begin + 800; // includes the objects around the columns
    tiles.push(tile);
  }
  return tiles;
}

const keyOf = (row: number, level: number, index: number) => row + "/" + level + "/" + index;

export class Store {
  private kept = new Map<string, Tile>(); // in order of use
  private bytes = 0;
  private asked = new Set<string>();
  private wanted: [number, number, number][] = [];
  private allSteps: Step[] = [];
  /** Consecutive steps. Those of several ranks overlap: then only those of the first rank are shown, and its number. */
  ribbon: { steps: Step[]; rank: number | null } = { steps: [], rank: null };
  private running = 0;
  readonly names = new Map<number, string>();
  private namesWanted = new Set<number>();
  private namesRunning = false;
  /** Called when something new can be drawn. */
  onNews: () => void = () => {};
  onError: (text: string) => void = () => {};

  constructor(readonly rows: Rows) {
    const report = window.opwatchReport;
    if (!report) return;
    const bytes = Uint8Array.from(atob(String(report.tiles ?? "")), (c) => c.charCodeAt(0));
    for (const tile of decode(bytes.buffer)) this.keep(tile);
    for (const [id, name] of Object.entries((report.names ?? {}) as Record<string, string>)) this.names.set(Number(id), name);
  }

  get steps(): Step[] {
    return this.allSteps;
  }
  set steps(steps: Step[]) {
    if (steps === this.allSteps) return;
    this.allSteps = steps;
    const ranks = new Set(steps.map((s) => s.rank));
    const rank = ranks.size > 1 ? Math.min(...[...ranks].filter((r): r is number => r !== null)) : null;
    this.ribbon = { steps: rank === null ? steps : steps.filter((s) => s.rank === rank), rank };
  }

  /** Requests the coarsest tile of each row, so that there is something to draw at once. */
  async prime() {
    if (inReport()) return;
    await this.fetchTiles(this.rows.rows.slice(0, BATCH).map((row) => [row.row, this.rows.top_level, 0]));
  }

  get(row: number, level: number, index: number): Tile | undefined {
    const key = keyOf(row, level, index);
    const tile = this.kept.get(key);
    // The order of use matters only when the cache is nearly full.
    if (tile && this.bytes > BYTES_MOST / 2) {
      this.kept.delete(key);
      this.kept.set(key, tile);
    }
    return tile;
  }

  /** The tile, or its nearest parent in the cache. */
  best(row: number, level: number, index: number): Tile | undefined {
    for (; level <= this.rows.top_level; level++, index = Math.floor(index / 2)) {
      const tile = this.get(row, level, index);
      if (tile) return tile;
    }
    return undefined;
  }

  /** Replaces the list of wanted tiles: those that are not visible any more are not requested. */
  want(keys: [number, number, number][]) {
    if (inReport()) return; // a report contains a fixed set of tiles
    this.wanted = keys.filter(([row, level, index]) => !this.kept.has(keyOf(row, level, index)) && !this.asked.has(keyOf(row, level, index)));
    this.pump();
  }

  private pump() {
    while (this.running < 2 && this.wanted.length) {
      const batch = this.wanted.splice(0, BATCH);
      void this.fetchTiles(batch);
    }
  }

  private async fetchTiles(batch: [number, number, number][]) {
    this.running++;
    for (const key of batch) this.asked.add(keyOf(...key));
    try {
      const response = await post("/api/tiles", batch.map((key) => key.join(" ")).join("\n"));
      for (const tile of decode(await response.arrayBuffer())) this.keep(tile);
    } catch (e) {
      this.onError((e as Error).message);
    } finally {
      for (const key of batch) this.asked.delete(keyOf(...key));
      this.running--;
    }
    this.onNews();
    this.pump();
  }

  keep(tile: Tile) {
    const own = keyOf(tile.row, tile.level, tile.index);
    this.bytes += tile.bytes - (this.kept.get(own)?.bytes ?? 0);
    this.kept.delete(own);
    this.kept.set(own, tile);
    for (const [key, old] of this.kept) {
      if (this.bytes <= BYTES_MOST) break;
      this.kept.delete(key);
      this.bytes -= old.bytes;
    }
  }

  nameOf(id: number): string | undefined {
    const name = this.names.get(id);
    if (name === undefined && !inReport()) {
      this.namesWanted.add(id);
      if (!this.namesRunning) {
        this.namesRunning = true;
        window.setTimeout(() => void this.fetchNames(), 10);
      }
    }
    return name;
  }

  private async fetchNames() {
    const ids = [...this.namesWanted].slice(0, 2000);
    ids.forEach((id) => this.namesWanted.delete(id));
    try {
      const texts = (await (await post("/api/names", ids.join("\n"))).json()) as (string | null)[];
      if (this.names.size > NAMES_MOST) this.names.clear(); // visible names are requested again
      ids.forEach((id, i) => this.names.set(id, texts[i] ?? ""));
    } catch (e) {
      this.onError((e as Error).message);
      ids.forEach((id) => this.names.set(id, ""));
    }
    this.namesRunning = this.namesWanted.size > 0;
    if (this.namesRunning) window.setTimeout(() => void this.fetchNames(), 0);
    this.onNews();
  }
}

export const loadRows = () => getJson<Rows>("/api/rows");
