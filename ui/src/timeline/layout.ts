// layout.ts: computes the positions of the timeline's rows: groups (processes) with tracks, tracks with rows (depth and
// lane). Pinned tracks come first, collapsed ones take one row, groups can be folded.
import type { Rows, TileRow, Track } from "./store";

export const ROW = 18;
export const COUNTER_ROW = 32;
const HEAD = 22; // height of a group's heading
const GAP = 4; // space below a track

export interface Line {
  y: number;
  height: number;
  rows: TileRow[]; // one row, or all rows of a collapsed track
}
export interface Block {
  kind: "group" | "track";
  key: string;
  y: number;
  height: number;
  title: string;
  detail: string;
  track?: Track;
  lines: Line[];
  busy: number; // share of the time in which the track's outermost rows are busy, 0…1
  folded: boolean;
  pinned: boolean;
  row_count: number;
}
export interface Layout {
  blocks: Block[];
  lines: Line[];
  height: number;
}
export interface Choices {
  folded: Set<string>; // keys of groups and tracks
  pinned: Set<string>;
  group: string; // a key of GROUPINGS
}

/** By what tracks are put into groups. */
export const GROUPINGS: Record<string, string> = { "": "process", rank: "rank", device: "device", kind: "kind" };

// What people look at first: the device, then the host.
const KIND_ORDER = ["stream", "accelerator", "device", "copy", "communication", "host", "loader", "frames", "async", "other", "span", "derived"];
const rank = (track: Track) => {
  const at = KIND_ORDER.indexOf(track.kind);
  return at < 0 ? KIND_ORDER.length : at;
};

export const trackKey = (id: number | string) => "t" + id;

/** A short name for a device on a single machine: "/job:localhost/replica:0/task:0/device:gpu:0" becomes "gpu:0". */
export const shortDevice = (name: string) => name.replace(/^\/job:localhost\/replica:0\/task:0/, "").replace(/^\/device:/, "").replace(/\/stream:all$/, " (all streams)");

function groupTitle(track: Track, by: string): string {
  if (by === "kind") return track.kind || "other";
  if (by === "rank") return track.rank >= 0 ? `rank ${track.rank}` : "no rank";
  if (by === "device") return (track.rank >= 0 ? `rank ${track.rank} · ` : "") + (shortDevice(track.device) || "host");
  const process = track.process || (track.device && track.device !== track.name ? track.device : "");
  const rankText = track.rank >= 0 ? `rank ${track.rank} · ` : "";
  return rankText + (process || "tracks");
}

function trackTitle(track: Track | undefined, row: TileRow): string {
  if (row.name) return shortDevice(row.name.replace(/^memory in use: /, ""));
  return shortDevice(track?.name ?? "") || (track?.tid !== undefined ? "thread " + track.tid : "track");
}

export function makeLayout(data: Rows, choices: Choices): Layout {
  const tracks = new Map(data.tracks.map((t) => [t.id, t]));
  const units = new Map<string, { track?: Track; rows: TileRow[]; title: string; group: string; order: number[] }>();
  data.rows.forEach((row) => {
    const track = tracks.get(row.track);
    const isValue = row.kind === "counter" || row.kind === "series";
    const key = isValue ? "c" + row.row : (row.kind === "samples" ? "s" : "t") + row.track;
    let unit = units.get(key);
    if (!unit) {
      unit = { track, rows: [], title: trackTitle(track, row) + (row.kind === "samples" ? " (samples)" : track?.kind === "frames" ? " · Python" : ""), group: track ? groupTitle(track, choices.group) : row.kind === "series" ? "memory" : "counters", order: [track?.rank ?? -1, track ? rank(track) : 99, isValue ? 1 : 0, track?.process_sort ?? 0, track?.sort ?? 0, row.row] };
      units.set(key, unit);
    }
    unit.rows.push(row);
  });
  const sorted = [...units.entries()].sort(([, a], [, b]) => {
    for (let i = 0; i < a.order.length; i++) if (a.order[i] !== b.order[i]) return a.order[i] - b.order[i];
    return 0;
  });
  const groups = new Map<string, typeof sorted>();
  for (const entry of sorted) {
    const group = choices.pinned.has(entry[0]) ? "pinned" : entry[1].group;
    groups.set(group, [...(groups.get(group) ?? []), entry]);
  }
  const names = [...groups.keys()].sort((a, b) => (a === "pinned" ? -1 : b === "pinned" ? 1 : 0));
  const layout: Layout = { blocks: [], lines: [], height: 0 };
  let y = 0;
  for (const name of names) {
    const members = groups.get(name) ?? [];
    const groupFolded = choices.folded.has("g" + name);
    if (names.length > 1 || name === "pinned") {
      layout.blocks.push({ kind: "group", key: "g" + name, y, height: HEAD, title: name, detail: members.length === 1 ? "1 track" : members.length + " tracks", lines: [], busy: 0, folded: groupFolded, pinned: false, row_count: 0 });
      y += HEAD;
    }
    if (groupFolded) continue;
    for (const [key, unit] of members) {
      const folded = choices.folded.has(key);
      const block: Block = { kind: "track", key, y, height: 0, title: unit.title, detail: unit.track?.kind ?? "", track: unit.track, lines: [], busy: 0, folded, pinned: choices.pinned.has(key), row_count: unit.rows.length };
      const each = unit.rows[0].kind === "counter" || unit.rows[0].kind === "series" ? COUNTER_ROW : ROW;
      const lines = folded ? [unit.rows.slice(0, 1)] : unit.rows.map((row) => [row]);
      for (const rows of lines) {
        const line = { y, height: each, rows };
        block.lines.push(line);
        layout.lines.push(line);
        y += each;
      }
      block.height = y - block.y;
      y += GAP;
      const first = unit.rows.filter((row) => row.depth === 0).reduce((sum, row) => sum + row.busy_ns, 0);
      block.busy = data.span_ns > 0 ? Math.min(1, first / data.span_ns) : 0;
      layout.blocks.push(block);
    }
  }
  layout.height = y;
  return layout;
}

export function lineAt(layout: Layout, y: number): Line | undefined {
  let low = 0;
  let high = layout.lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.lines[middle].y + layout.lines[middle].height <= y) low = middle + 1;
    else high = middle;
  }
  const line = layout.lines[low];
  return line && line.y <= y ? line : undefined;
}
