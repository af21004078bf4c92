// ops.tsx: the page Ops: costs by operation type, scope or graph, with tfprof's options as a form. A row links to its
// events in the timeline.
import { useMemo, useState } from "preact/hooks";
import { change, go, param } from "../address";
import { inReport, type Params, type Row, type Table as TableData } from "../api";
import { useAnswer } from "../load";
import { askCommand, useAsked } from "../parts/asked";
import { Bars } from "../parts/bars";
import { baseFiles, Empty, Failure, Panel, Waiting } from "../parts/panel";
import { toCsv, toMarkdown } from "../parts/table";
import { View } from "../parts/view";
import * as format from "../format";

const VIEWS: Record<string, string> = {
  work: "by type, own time",
  op: "by type (tfprof)",
  scope: "by name scope",
  lines: "by line",
  devices: "by device",
  opstats: "every operation",
  functions: "functions (samples)",
};
const METRICS = ["micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "params", "float_ops", "occurrence"];
// The presets that the original tfprof page offered.
const PRESETS: Record<string, Params> = {
  "time": { select: "micros\noccurrence", order_by: "micros" },
  "memory": { select: "bytes\npeak_bytes\noutput_bytes", order_by: "bytes" },
  "float operations": { select: "float_ops\nmicros", order_by: "float_ops" },
  "parameters": { select: "params", order_by: "params" },
};
const REGEXES = ["account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes"];
const MINIMA = ["min_micros", "min_bytes", "min_params", "min_float_ops", "min_occurrence"];

export function OpsPage() {
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const work = useAnswer<TableData>("/api/view", { name: "work" });
  const sampled = (metrics.value?.rows.length ?? 0) > 0;
  const onlySampled = sampled && (work.value?.rows.length ?? 0) === 0;
  const view = param("view") in VIEWS ? param("view") : onlySampled ? "functions" : "work";
  const tree = view === "op" || view === "scope";
  const [form, setForm] = useState(false);
  const params: Params = {};
  if (tree) {
    for (const name of ["select", "order_by", "step", "max_depth", ...REGEXES, ...MINIMA]) if (param(name)) params[name] = param(name);
    if (!params.select && !params.order_by) Object.assign(params, { select: "micros\noccurrence", order_by: "micros" });
    params.max_depth ??= view === "op" ? 1000000 : 6;
  } else if (param("step")) params.step = param("step");
  const metric = String(params.order_by ?? "micros");
  // Self times of types in each step, for the small charts in the table by type.
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  const byType = view === "work" && (steps.value?.rows.length ?? 0) > 1;
  const each = useAsked(byType ? "op_steps" : null, { ...thisRun(), limit: Math.max(10, Math.min(200, Math.floor(20000 / (steps.value?.rows.length ?? 1)))) });
  const series = useMemo(() => {
    const out = new Map<string, Row[]>();
    for (const row of each.value?.rows ?? []) out.set(String(row.op_type), [...(out.get(String(row.op_type)) ?? []), row]);
    return out;
  }, [each.value]);
  const numbers = useMemo(() => [...new Set((each.value?.rows ?? []).map((row) => Number(row.step)))].sort((a, b) => a - b), [each.value]);
  return (
    <div class="page">
      <div class="bar">
        {Object.entries(VIEWS).filter(([name]) => name !== "functions" || sampled).map(([name, title]) => (
          <button key={name} type="button" class={name === view ? "on" : ""} aria-pressed={name === view} onClick={() => change({ view: name, sort: "" })}>
            {title}
          </button>
        ))}
        <span class="spacer" />
        {tree && !inReport() && (
          <button type="button" aria-expanded={form} onClick={() => setForm(!form)}>
            options {form ? "▴" : "▾"}
          </button>
        )}
      </div>
      {tree && form && <Options params={params} />}
      <View
        key={view}
        view={view}
        title="Operations"
        params={params}
        tree={tree}
        keep={tree ? (row) => row.name !== "_TFProfRoot" : undefined}
        titles={{ percent: "share", busy_ns: "busy", busy_step_ns: "busy per step", outlier_ns: "over the median", top_op: "costliest", self_percent: "own share", self: "own", total_percent: "share with callees", total: "with callees" }}
        bar={view === "functions" ? "self" : view === "work" ? "time_ns" : view === "opstats" ? "self_ns" : view === "lines" ? (onlySampled ? "self" : "time_ns") : view === "devices" ? "busy_ns" : view === "scope" ? "total_" + metric : metric}
        shown={view === "work" ? ["name", "time_ns", "percent", "accelerator_ns", "cpu_ns", "runs", "ops", "median_ns", "outlier_ns", "top_op"] : view === "functions" ? ["name", "self", "self_percent", "total", "total_percent", "module", "file"] : view === "opstats" ? ["name", "type", "where", "runs", "total_ns", "self_ns", "average_ns", "percent"] : view === "lines" ? ["name", "time_ns", "self", "percent", "self_percent", "top_type", "accelerator_ns", "cpu_ns", "bytes", "float_ops", "ops", "text"] : undefined}
        sort={param("sort")}
        onSort={(sort) => change({ sort })}
        filter={param("q")}
        onFilter={(q) => change({ q }, true)}
        height={Math.max(12, Math.floor((window.innerHeight - (param("op") ? 470 : 230)) / 24))}
        empty={view === "lines" ? "The files name no lines of source code." : view === "devices" ? "The files name no device." : "There are no operations in these files."}
        extra={byType && series.size > 0 ? { title: "per step", draw: (row) => <Spark rows={series.get(String(row.name)) ?? []} steps={numbers} />, onOpen: (row) => change({ op: String(row.name) }) } : undefined}
        isMarked={(row) => row.name === param("op")}
        onOpen={(row) => view === "devices" ? go({ page: "timeline", params: { group: "device" } }) : view === "lines" && row.file ? go({ page: "code", params: { file: String(row.file), line: String(row.line ?? "") } }) : go({ page: "timeline", params: { q: "^" + String(row.top_op || row.name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") } })}
      />
      {param("op") && view === "work" && !inReport() && <OneOp name={param("op")} />}
    </div>
  );
}

/** With a base, queries see two runs: this selects the new one. */
const thisRun = (): Record<string, string> => (baseFiles.value.length ? { only_run: "new" } : {});

/** Draws a bar for each step; the highest bar fills the height. */
function Spark(p: { rows: Row[]; steps: number[] }) {
  if (!p.rows.length) return null;
  const most = Math.max(...p.rows.map((row) => Number(row.self_ms)), 1e-9);
  const width = 96 / Math.max(1, p.steps.length);
  return (
    <svg class="spark" viewBox="0 0 96 18" width={96} height={18} role="img" aria-label={`${p.rows.length} steps, at most ${format.time(most * 1e6)}; Space shows them`}>
      {p.rows.map((row) => {
        const height = Math.max(0.6, (17 * Number(row.self_ms)) / most);
        return <rect key={String(row.step)} x={p.steps.indexOf(Number(row.step)) * width} y={18 - height} width={Math.max(0.5, Math.min(width - 1, 12))} height={height} />;
      })}
    </svg>
  );
}

/** Shows one type of operation: its self time in each step, and how long its runs take. */
function OneOp(p: { name: string }) {
  const steps = useAsked("op_steps", { ...thisRun(), type: p.name });
  const runs = useAsked("durations", { ...thisRun(), type: p.name });
  const parts: [string, string, typeof steps, (rows: Row[]) => { label: string; value: number; title: string }[]][] = [
    ["Own time per step", "op_steps", steps, (rows) => rows.map((row) => ({ label: String(row.step), value: Number(row.self_ms) * 1e6, title: `step ${row.step}: ${format.time(Number(row.self_ms) * 1e6)} in ${format.plural(Number(row.runs), "run")}` }))],
    ["Durations of its runs", "durations", runs, (rows) => rows.map((row) => ({ label: format.time(Number(row.from_us) * 1e3), value: Number(row.runs), title: `${format.time(Number(row.from_us) * 1e3)} to ${format.time(Number(row.to_us) * 1e3)}: ${format.plural(Number(row.runs), "run")}, ${format.time(Number(row.total_ms) * 1e6)} in all` }))],
  ];
  return (
    <>
      <div class="bar">
        <b>{p.name}</b>
        <button type="button" onClick={() => go({ page: "timeline", params: { q: "^" + p.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") } })}>its runs in the timeline</button>
        <button type="button" onClick={() => change({ op: "" })}>close</button>
      </div>
      <div class="columns">
        {parts.map(([title, query, answer, bars]) => (
          <Panel key={query} title={title} remark={answer.value ? format.plural(answer.value.rows.length, query === "op_steps" ? "step" : "bucket") : undefined} copies={{ command: askCommand(query, { type: p.name }), markdown: () => toMarkdown(answer.value?.columns ?? [], answer.value?.rows ?? []), csv: () => toCsv(answer.value?.columns ?? [], answer.value?.rows ?? []) }}>
            {answer.error ? <Failure text={answer.error} /> : !answer.value ? <Waiting /> : answer.value.rows.length ? <Bars label={`${title} of ${p.name}`} bars={bars(answer.value.rows)} value={query === "op_steps" ? format.time : format.count} /> : <Empty>{answer.value.footer ?? "Nothing was recorded of it."}</Empty>}
          </Panel>
        ))}
      </div>
    </>
  );
}

function Options(p: { params: Params }) {
  const list = (name: string) => String(p.params[name] ?? "").split("\n").join(",");
  const set = (name: string) => (e: { currentTarget: { value: string } }) => change({ [name]: e.currentTarget.value.split(",").join("\n") });
  return (
    <form class="options" onSubmit={(e) => e.preventDefault()}>
      <div>
        presets:{" "}
        {Object.entries(PRESETS).map(([name, values]) => (
          <button key={name} type="button" onClick={() => change(Object.fromEntries(Object.entries(values).map(([k, v]) => [k, String(v)])))}>
            {name}
          </button>
        ))}
      </div>
      <label>
        order by
        <select value={String(p.params.order_by ?? "micros")} onChange={(e) => change({ order_by: e.currentTarget.value, select: [e.currentTarget.value, "occurrence"].join("\n"), sort: "" })}>
          {METRICS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        step
        <input type="number" value={String(p.params.step ?? "")} placeholder="average" onChange={set("step")} />
      </label>
      {["max_depth", ...MINIMA].map((name) => (
        <label key={name}>
          {name.replace(/_/g, " ")}
          <input type="number" value={String(param(name))} onChange={set(name)} />
        </label>
      ))}
      {REGEXES.map((name) => (
        <label key={name} class="wide">
          {name.replace(/_/g, " ")}
          <input type="text" value={list(name)} placeholder=".*" onChange={set(name)} />
        </label>
      ))}
    </form>
  );
}
