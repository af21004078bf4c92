// path.tsx: the critical path of a step in the timeline: a strip above the tracks with its pieces, one after the other,
// and a table of them beside the tracks. The rows are those of `opwatch path`: they sum to the step. The parameter
// `path` of the address is the number of the step, or "on": the step that the library chooses.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cell, Row, Table as TableData } from "../api";
import { change, param } from "../address";
import { PHASE_COLOURS, PHASE_TITLES, isLight, parse } from "../colours";
import * as format from "../format";
import { epoch, useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { padded, type Controller } from "./controller";
import { readPalette, release, sized } from "./draw";

interface PathTable extends TableData {
  step?: number;
  step_ns?: number;
  replay_error: number | null;
  refused: string | null;
}
export interface Piece {
  from: number; // on the axis of the timeline
  to: number;
  row: Row;
}
export interface CriticalPath {
  table?: PathTable;
  pieces: Piece[];
  error?: string;
}

const HEIGHT = 26;
/** Kinds that are not phases, with the phase whose colour they use. */
const PHASE_OF: Record<string, string> = { kernel: "compute", host_gap: "host", host_communication: "communication", latency: "idle", unexplained: "unknown" };
const KIND_TITLES: Record<string, string> = { kernel: "kernel", host_gap: "code between operators", host_communication: "communication of the host", latency: "latency", unexplained: "unexplained" };
const colourOf = (kind: Cell) => PHASE_COLOURS[PHASE_OF[String(kind)] ?? String(kind)] ?? PHASE_COLOURS.unknown;
const kindTitle = (kind: Cell) => KIND_TITLES[String(kind)] ?? PHASE_TITLES[String(kind)] ?? String(kind);

/** The pieces with their positions. A time since 1970 has more digits than a JavaScript number: the first is parsed
 * as text, the others are relative to it. */
function piecesOf(text: string, zero: string): CriticalPath {
  const table = JSON.parse(text) as PathTable;
  const begin = /"ts_ns": (-?\d+)/.exec(text);
  let at = begin ? Number(BigInt(begin[1]) - BigInt(zero || "0")) : 0;
  const pieces = table.rows.map((row) => {
    const from = at;
    at += Number(row.dur_ns);
    return { from, to: at, row };
  });
  return { table, pieces };
}

/** The path that the address asks for; when it arrives it is scrolled into view. */
export function usePath(c: Controller): CriticalPath | null {
  const wanted = param("path");
  const answer = useAnswer<string>(wanted ? "/api/path" : null, { step: /^\d+$/.test(wanted) ? wanted : undefined, epoch: epoch.value || undefined }, true);
  const zero = c.store.rows.zero_ns;
  const path = useMemo(() => (answer.value === undefined ? null : piecesOf(answer.value, zero)), [answer.value, zero]);
  useEffect(() => {
    if (!path?.pieces.length) return;
    const whole = { from: path.pieces[0].from, to: path.pieces[path.pieces.length - 1].to };
    const { from, to } = c.range.peek();
    const seen = Math.min(to, whole.to) - Math.max(from, whole.from);
    if (seen <= 0 || whole.to - whole.from < (to - from) * 0.1) c.setRange(padded(whole, 0.02), "replace");
  }, [path]);
  if (!wanted) return null;
  return answer.error ? { pieces: [], error: answer.error } : (path ?? { pieces: [] });
}

/** Index of the first piece that ends after a time. */
function firstAfter(pieces: Piece[], t: number): number {
  let [low, high] = [0, pieces.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle].to > t) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A separate component, because it is drawn again with every move. */
export function PathStrip(p: { c: Controller; path: CriticalPath }) {
  const { c, path } = p;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<{ x: number; piece: Piece } | null>(null);
  const range = c.range.value;
  const { width } = c.size.value;
  const scale = width / (range.to - range.from);
  useEffect(() => {
    const element = canvas.current;
    return () => release(element);
  }, []);
  useEffect(() => {
    const g = canvas.current?.getContext("2d");
    if (!canvas.current || !g) return;
    const ratio = window.devicePixelRatio || 1;
    const palette = readPalette(canvas.current);
    sized(canvas.current, width * ratio, HEIGHT * ratio);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, HEIGHT);
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    let last = -1; // pieces narrower than half a pixel are drawn as one
    for (let i = firstAfter(path.pieces, range.from); i < path.pieces.length && path.pieces[i].from < range.to; i++) {
      const { from, to, row } = path.pieces[i];
      const x0 = Math.max(-1, (from - range.from) * scale);
      const x1 = Math.min(width + 1, (to - range.from) * scale);
      if (x1 < last + 0.5) continue;
      last = x1;
      const colour = colourOf(row.kind);
      g.fillStyle = colour;
      g.fillRect(x0, 3, Math.max(0.5, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), HEIGHT - 6);
      if (x1 - x0 < 40) continue;
      const room = Math.floor((x1 - x0 - 8) / 6);
      const name = String(row.op ?? "");
      g.fillStyle = isLight(parse(colour)) ? "#10151c" : "#ffffff";
      g.fillText(name.length > room ? name.slice(0, Math.max(1, room - 1)) + "…" : name, Math.max(2, x0 + 4), HEIGHT / 2, x1 - x0 - 6);
    }
    if (!path.pieces.length) {
      g.fillStyle = palette.faint;
      g.fillText(path.table || path.error ? "there is none: the panel says why" : "is computed", 8, HEIGHT / 2);
    }
  });
  const find = (e: MouseEvent) => {
    const t = range.from + e.offsetX / scale;
    const piece = path.pieces[firstAfter(path.pieces, t)];
    return piece && piece.from <= t ? { x: e.offsetX, piece } : null;
  };
  const number = path.table?.step;
  return (
    <>
      <div class="path-label">critical path{number === undefined ? "" : ` of step ${number}`}</div>
      <div class="path-strip">
        <canvas ref={canvas} role="img" aria-label="the critical path; the table beside the tracks has its pieces" onPointerMove={(e) => setAt(find(e))} onPointerLeave={() => setAt(null)} onClick={(e) => {
          const hit = find(e);
          if (hit && hit.piece.row.event !== null) c.select(Number(hit.piece.row.event));
        }} />
        {at && (
          <div class="hover" style={{ top: HEIGHT + "px", ...(at.x > width * 0.6 ? { right: width - at.x + 8 + "px" } : { left: at.x + 12 + "px" }) }}>
            <div>{String(at.piece.row.op ?? "")}</div>
            <div>{kindTitle(at.piece.row.kind)} · {format.time(at.piece.to - at.piece.from)} of the path, {format.percent(100 * Number(at.piece.row.share))}</div>
          </div>
        )}
      </div>
    </>
  );
}

const COLUMNS = [
  { name: "op", type: "text", unit: null },
  { name: "kind", type: "text", unit: null },
  { name: "dur_ns", type: "int", unit: "ns" },
  { name: "percent", type: "real", unit: "percent" },
  { name: "rank", type: "int", unit: null },
  { name: "line", type: "text", unit: null },
];

export function PathPanel(p: { c: Controller; path: CriticalPath }) {
  const { table, pieces, error } = p.path;
  const rows = useMemo(() => pieces.map(({ row }) => ({ ...row, kind: kindTitle(row.kind), percent: 100 * Number(row.share) }) as unknown as Row), [pieces]);
  const step = table?.step;
  const steps = p.c.store.steps;
  const words = step === undefined ? ["path"] : ["path", "--step", String(step)];
  return (
    <aside class="side">
      <Panel title="Critical path" remark={step === undefined ? undefined : `step ${step}, ${format.time(table?.step_ns ?? 0)}`} copies={{ command: command(...words), sql: "SELECT * FROM path", markdown: () => toMarkdown(COLUMNS, rows), csv: () => toCsv(COLUMNS, rows) }}>
        {error && <Failure text={error} />}
        {!error && !table && <Waiting what="What waits for what in the recording is computed." />}
        {table && !rows.length && <Empty>{table.footer ?? "The step has no path."}</Empty>}
        {steps.length > 1 && (
          <label class="fact">
            step{" "}
            <input type="number" aria-label="step of the critical path" value={step ?? ""} onChange={(e) => change({ path: e.currentTarget.value || "on" })} />
          </label>
        )}
        {rows.length > 0 && (
          <>
            <p class="fact">
              What the step waited for, one after the other; the rows sum to the step. To make something else faster does not make this step faster.
              {typeof table?.replay_error === "number" ? ` The replay predicts other steps within ${format.percent(100 * table.replay_error)}.` : ""}
            </p>
            <Table label="pieces of the critical path" columns={COLUMNS} rows={rows} titles={{ dur_ns: "on the path", percent: "share" }} bar="dur_ns" height={24} onOpen={(row) => row.event !== null && p.c.select(Number(row.event))} />
          </>
        )}
      </Panel>
    </aside>
  );
}
