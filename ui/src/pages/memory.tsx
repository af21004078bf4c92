// memory.tsx: the page Memory: use over time for each heap, memory in use at the peak, at any other time, and between
// two times; growth from step to step.
import { useMemo, useState } from "preact/hooks";
import { change, go, param } from "../address";
import { inReport, type Column, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Chart } from "../parts/chart";
import { axisStep, axisTime } from "../timeline/draw";
import { Empty, Failure, Panel, Waiting, command, viewStart } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { optionWords, View } from "../parts/view";

const keyOf = (row: Row) => [row.device, row.allocator, row.rank].map((v) => v ?? "").join("\t");
const titleOf = (key: string) => {
  const [device, allocator, rank] = key.split("\t");
  return [device, allocator, rank !== "" ? "rank " + rank : ""].filter(Boolean).join(" · ") || "memory";
};

export function MemoryPage() {
  const heaps = useAnswer<TableData>("/api/view", { name: "heaps" });
  if (heaps.error) return <Failure text={heaps.error} />;
  if (!heaps.value) return <Waiting />;
  if (!heaps.value.rows.length)
    return (
      <div class="page">
        <Panel title="Memory" copies={{ command: command("memory") }}><Empty page="memory">{heaps.value.footer ?? "No memory was recorded: the files hold no allocations over time. PyTorch's profile_memory=True, its memory snapshots and TensorFlow's full traces have them."}</Empty></Panel>
      </div>
    );
  const keys = [...new Set(heaps.value.rows.map(keyOf))];
  const heap = keys.includes(param("heap")) ? param("heap") : keyOf(heaps.value.rows.reduce((a, b) => (Number(b.peak_bytes) > Number(a.peak_bytes) ? b : a)));
  return (
    <div class="page">
      <View view="heaps" title="Heaps" shown={["device", "allocator", "rank", "peak_bytes", "peak_step", "start_bytes", "end_bytes", "reserved_peak_bytes", "unused_at_peak_bytes", "fragmentation_percent", "allocations", "releases", "out_of_memory"]} bar="peak_bytes" height={8} empty="No heaps." onOpen={(row) => change({ heap: keyOf(row) })} />
      <Curve heap={heap} cursors={cursorsOf()} onCursors={inReport() ? undefined : putCursors} />
      <div class="columns">
        {cursorsOf().length ? <AtCursors heap={heap} cursors={cursorsOf()} /> : <Peak heap={heap} />}
        <View view="memory_steps" title="Step by step" keep={(row) => keyOf(row) === heap} keepKey={heap} shown={["step", "start_bytes", "peak_bytes", "end_bytes", "growth_bytes", "allocations", "allocated_bytes"]} bar="peak_bytes" height={14} empty="No steps are known, so there is no growth from step to step to show." />
      </div>
    </div>
  );
}

/** Adds units to the sizes in a list of memory in use: "train.py:10 (12345)". */
const withSizes = (alive: string) => alive.replace(/ \((\d+)\)/g, (_, n: string) => " " + format.bytes(Number(n)));

/** The curve of the heap with the largest peak, for the page Start. */
export function MemoryCurve() {
  const heaps = useAnswer<TableData>("/api/view", { name: "heaps" });
  const rows = heaps.value?.rows ?? [];
  return rows.length ? <Curve heap={keyOf(rows.reduce((a, b) => (Number(b.peak_bytes) > Number(a.peak_bytes) ? b : a)))} /> : null;
}

/** The times in the address: none, one, or two, sorted. */
function cursorsOf(): number[] {
  if (inReport()) return [];
  return param("cursors").split(",").filter((text) => /^\d+$/.test(text)).map(Number).slice(0, 2).sort((a, b) => a - b);
}
const putCursors = (cursors: number[], replace = false) => change({ cursors: [...new Set(cursors)].sort((a, b) => a - b).join(",") }, replace);
const inTimeline = (from: number, to: number) => go({ page: "timeline", params: { t: `${Math.round(from + viewStart.value)}-${Math.round(to + viewStart.value)}` } });

function Curve(p: { heap: string; cursors?: number[]; onCursors?: (cursors: number[], replace?: boolean) => void }) {
  const time = useAnswer<TableData>("/api/view", { name: "memory_time" });
  const steps = useAnswer<TableData>("/api/view", { name: "memory_steps" });
  const heaps = useAnswer<TableData>("/api/view", { name: "heaps" });
  const [at, setAt] = useState<number | null>(null);
  const rows = useMemo(() => (time.value?.rows ?? []).filter((row) => keyOf(row) === p.heap), [time.value, p.heap]);
  const x = useMemo(() => rows.map((row) => Number(row.ts_ns)), [rows]);
  const series = useMemo(() => {
    const out = [{ title: "in use", values: rows.map((row) => (row.in_use_bytes === null ? null : Number(row.in_use_bytes))), colour: "#3b7dc4" }];
    if (rows.some((row) => row.reserved_bytes !== null)) out.push({ title: "held by the allocator", values: rows.map((row) => (row.reserved_bytes === null ? null : Number(row.reserved_bytes))), colour: "#d55e00" });
    return out;
  }, [rows]);
  if (time.error) return <Panel title="Over time"><Failure text={time.error} /></Panel>;
  if (!time.value) return <Panel title="Over time"><Waiting /></Panel>;
  const cursors = p.cursors ?? [];
  const peak = rows.find((one) => one.peak === true);
  const row = at !== null ? rows[at] : peak;
  const whole = heaps.value?.rows.find((one) => keyOf(one) === p.heap);
  const columns = time.value.columns.filter((c) => ["ts_ns", "in_use_bytes", "reserved_bytes", "alive"].includes(c.name));
  const marks = cursors.map((t, i) => ({ x: t, title: cursors.length > 1 ? (i ? "B" : "A") : "cursor" }));
  /** A click moves the cursor; with Shift it adds a second one. */
  const put = (t: number, shift: boolean, replace = false) => p.onCursors?.(shift && cursors.length ? [cursors[cursors.length - 1] === t ? cursors[0] : cursors[cursors.length - 1], Math.max(0, t)] : [Math.max(0, t)], replace);
  const stepsHere = (steps.value?.rows ?? []).filter((one) => keyOf(one) === p.heap).length;
  return (
    <Panel title={"Over time: " + titleOf(p.heap)} remark={row ? `${at !== null ? "at" : "peak at"} ${format.time(Number(at === null ? (whole?.peak_ns ?? row.ts_ns) : row.ts_ns))}: ${format.bytes(Number(row.in_use_bytes))}${row.reserved_bytes !== null ? " of " + format.bytes(Number(row.reserved_bytes)) + " held" : ""}` : undefined} copies={{ command: command("memory_time"), sql: "SELECT * FROM memory_time_view", markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
      {rows.length > 1 ? <Chart label={"memory of " + titleOf(p.heap) + " over time; arrows move the cursor, Shift with arrows puts a second one; the table below says what is in use there"} x={x} series={series} marks={marks} formatX={(v) => axisTime(v, axisStep({ from: x[0], to: x[x.length - 1] }, 12))} formatY={(v) => format.bytes(v)} onCursor={setAt} onClick={p.onCursors ? put : undefined} onKey={p.onCursors ? (i, shift) => put(x[i], shift, true) : undefined} height={240} /> : <Empty>There are too few changes for a curve.</Empty>}
      {p.onCursors && rows.length > 1 && (
        <div class="bar">
          {peak && <button type="button" onClick={() => p.onCursors?.([typeof whole?.peak_ns === "number" ? whole.peak_ns : peakTime(peak, x)])}>cursor to the peak</button>}
          {stepsHere > 0 && <button type="button" title="from the beginning to the end" onClick={() => p.onCursors?.([x[0], x[x.length - 1]])}>beginning and end</button>}
          {cursors.length > 0 && <button type="button" onClick={() => inTimeline(cursors[0] - (cursors.length > 1 ? 0 : 5e6), cursors[cursors.length - 1] + (cursors.length > 1 ? 0 : 5e6))}>show in the timeline</button>}
          {cursors.length > 0 && <button type="button" onClick={() => p.onCursors?.([])}>remove {cursors.length > 1 ? "cursors" : "cursor"}</button>}
        </div>
      )}
      {row?.alive && <p class="fact">in use {at !== null ? "then" : "at the peak"}: {withSizes(String(row.alive))}</p>}
      <p class="fact">{p.onCursors ? "a click puts a cursor and shows what is in use then; with Shift a second one, and what changed in between; drag zooms, a double click shows all" : "drag zooms, a double click shows all"}</p>
    </Panel>
  );
}

/** The time of the peak: the peak ends where the next part of the curve begins. */
const peakTime = (row: Row, x: number[]) => {
  const next = x.find((t) => t > Number(row.ts_ns));
  return next === undefined ? Number(row.ts_ns) : next - 1;
};

/** Shows the memory in use at the cursor, or at two and the difference. */
function AtCursors(p: { heap: string; cursors: number[] }) {
  const [from, to] = p.cursors.length > 1 ? p.cursors : [undefined, p.cursors[0]];
  const params = { name: "memory_at", time_from: from, time_to: to };
  const answer = useAnswer<TableData>("/api/view", params);
  const title = from === undefined ? `In use at ${format.time(to)}` : `From A, ${format.time(from)}, to B, ${format.time(to)}`;
  if (answer.error) return <Panel title={title}><Failure text={answer.error} /></Panel>;
  if (!answer.value) return <Panel title={title}><Waiting /></Panel>;
  const rows = answer.value.rows.filter((row) => keyOf(row) === p.heap);
  const groups = [...new Set(rows.map((row) => String(row.grouped_by)))];
  const by = groups.includes(param("by")) ? param("by") : (groups[0] ?? "");
  const shown = rows.filter((row) => row.grouped_by === by);
  const sum = (key: string) => shown.reduce((all, row) => all + Number(row[key]), 0);
  const names = from === undefined ? ["name", "bytes", "percent", "blocks"] : ["name", "start_bytes", "bytes", "change_bytes"];
  const columns = names.map((name) => answer.value?.columns.find((c) => c.name === name)).filter((c): c is Column => !!c);
  return (
    <Panel title={title} remark={<span>{shown.length > 0 && (from === undefined ? format.bytes(sum("bytes")) : `${format.bytes(sum("start_bytes"))} → ${format.bytes(sum("bytes"))}`)} {groups.map((g) => <button key={g} type="button" class={g === by ? "on" : ""} aria-pressed={g === by} onClick={() => change({ by: g })}>by {g}</button>)}</span>} copies={{ command: command("memory_at", ...optionWords(params)), sql: `SELECT * FROM memory_at_view(${from === undefined ? "" : `time_from := ${from}, `}time_to := ${to})`, markdown: () => toMarkdown(columns, shown), csv: () => toCsv(columns, shown) }}>
      {shown.length ? <Table label="memory at the cursor" columns={columns} rows={shown} bar={from === undefined ? "bytes" : undefined} titles={{ percent: "share", start_bytes: "at A", bytes: from === undefined ? "in use" : "at B", change_bytes: "change" }} height={14} onOpen={by === "line" ? openLine : undefined} /> : <Empty>{answer.value.rows.length ? "This heap has nothing in use then." : (answer.value.footer ?? "nothing was in use then")}</Empty>}
    </Panel>
  );
}

/** Opens "train.py:34:minimize" on the page Code. */
function openLine(row: Row) {
  const at = /^(.*?):(\d+)/.exec(String(row.name));
  if (at) go({ page: "code", params: { file: at[1], line: at[2] } });
}

function Peak(p: { heap: string }) {
  const peak = useAnswer<TableData>("/api/view", { name: "memory_peak" });
  const rows = (peak.value?.rows ?? []).filter((row) => keyOf(row) === p.heap);
  const groups = [...new Set(rows.map((row) => String(row.grouped_by)))];
  const by = groups.includes(param("by")) ? param("by") : (groups[0] ?? "");
  const shown = rows.filter((row) => row.grouped_by === by);
  if (peak.error) return <Panel title="At the peak"><Failure text={peak.error} /></Panel>;
  if (!peak.value) return <Panel title="At the peak"><Waiting /></Panel>;
  const columns = peak.value.columns.filter((c) => ["name", "bytes", "percent", "blocks"].includes(c.name));
  return (
    <Panel title="At the peak" remark={<span>{groups.map((g) => <button key={g} type="button" class={g === by ? "on" : ""} aria-pressed={g === by} onClick={() => change({ by: g })}>by {g}</button>)}</span>} copies={{ command: command("memory_peak"), sql: "SELECT * FROM memory_peak_view", markdown: () => toMarkdown(columns, shown), csv: () => toCsv(columns, shown) }}>
      {shown.length ? <Table label="memory at the peak" columns={columns} rows={shown} bar="bytes" titles={{ percent: "share" }} height={14} onOpen={by === "line" ? openLine : undefined} /> : <Empty>What was alive at the peak is not known.</Empty>}
    </Panel>
  );
}
