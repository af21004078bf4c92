// memory.tsx: the page Memory: use over time per heap, what is alive at the peak, growth from step to step.
import { useMemo, useState } from "preact/hooks";
import { change, go, param } from "../address";
import type { Row, Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Chart } from "../parts/chart";
import { axisStep, axisTime } from "../timeline/draw";
import { Empty, Failure, Panel, Waiting, command, viewStart } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { View } from "../parts/view";

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
      <Curve heap={heap} />
      <div class="columns">
        <Peak heap={heap} />
        <View view="memory_steps" title="Step by step" keep={(row) => keyOf(row) === heap} shown={["step", "start_bytes", "peak_bytes", "end_bytes", "growth_bytes", "allocations", "allocated_bytes"]} bar="peak_bytes" height={14} empty="No steps are known, so there is no growth from step to step to show." />
      </div>
    </div>
  );
}

/** "train.py:10 (12345)": the sizes in what is alive, with units. */
const withSizes = (alive: string) => alive.replace(/ \((\d+)\)/g, (_, n: string) => " " + format.bytes(Number(n)));

/** The heap with the largest peak, for the page Start. */
export function MemoryCurve() {
  const heaps = useAnswer<TableData>("/api/view", { name: "heaps" });
  const rows = heaps.value?.rows ?? [];
  return rows.length ? <Curve heap={keyOf(rows.reduce((a, b) => (Number(b.peak_bytes) > Number(a.peak_bytes) ? b : a)))} /> : null;
}

function Curve(p: { heap: string }) {
  const time = useAnswer<TableData>("/api/view", { name: "memory_time" });
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
  const row = at !== null ? rows[at] : rows.find((one) => one.peak === true);
  const columns = time.value.columns.filter((c) => ["ts_ns", "in_use_bytes", "reserved_bytes", "alive"].includes(c.name));
  return (
    <Panel title={"Over time: " + titleOf(p.heap)} remark={row ? `${at !== null ? "at" : "peak at"} ${format.time(Number(row.ts_ns))}: ${format.bytes(Number(row.in_use_bytes))}${row.reserved_bytes !== null ? " of " + format.bytes(Number(row.reserved_bytes)) + " held" : ""}` : undefined} copies={{ command: command("memory_time"), sql: "SELECT * FROM memory_time_view", markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
      {rows.length > 1 ? <Chart label={"memory of " + titleOf(p.heap) + " over time"} x={x} series={series} formatX={(v) => axisTime(v, axisStep({ from: x[0], to: x[x.length - 1] }, 12))} formatY={(v) => format.bytes(v)} onCursor={setAt} onClick={(t) => go({ page: "timeline", params: { t: `${Math.round(t + viewStart.value - 5e6)}-${Math.round(t + viewStart.value + 5e6)}` } })} height={240} /> : <Empty>There are too few changes for a curve.</Empty>}
      {row?.alive && <p class="fact">alive {at !== null ? "then" : "at the peak"}: {withSizes(String(row.alive))}</p>}
      <p class="fact">drag zooms, a double click shows all, a click opens the timeline there</p>
    </Panel>
  );
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
      {shown.length ? <Table label="memory at the peak" columns={columns} rows={shown} bar="bytes" titles={{ percent: "share" }} height={14} /> : <Empty>What was alive at the peak is not known.</Empty>}
    </Panel>
  );
}
