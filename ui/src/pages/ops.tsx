// ops.tsx: the page Ops: what ran, by operation type, scope or graph, with tfprof's options as a form. A row leads to its
// occurrences in the timeline.
import { useState } from "preact/hooks";
import { change, go, param } from "../address";
import { inReport, type Params, type Table as TableData } from "../api";
import { useAnswer } from "../load";
import { View } from "../parts/view";

const VIEWS: Record<string, string> = {
  work: "by type, own time",
  op: "by type (tfprof)",
  scope: "by name scope",
  opstats: "every operation",
  functions: "functions (samples)",
};
const METRICS = ["micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "params", "float_ops", "occurrence"];
// What the original's page offered as presets.
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
        titles={{ percent: "share", outlier_ns: "over the median", top_op: "costliest", self_percent: "own share", self: "own", total_percent: "share with callees", total: "with callees" }}
        bar={view === "functions" ? "self" : view === "work" ? "time_ns" : view === "opstats" ? "self_ns" : view === "scope" ? "total_" + metric : metric}
        shown={view === "work" ? ["name", "time_ns", "percent", "accelerator_ns", "cpu_ns", "runs", "ops", "median_ns", "outlier_ns", "top_op"] : view === "functions" ? ["name", "self", "self_percent", "total", "total_percent", "module", "file"] : view === "opstats" ? ["name", "type", "where", "runs", "total_ns", "self_ns", "average_ns", "percent"] : undefined}
        sort={param("sort")}
        onSort={(sort) => change({ sort })}
        filter={param("q")}
        onFilter={(q) => change({ q }, true)}
        height={Math.max(12, Math.floor((window.innerHeight - 230) / 24))}
        empty="There are no operations in these files."
        onOpen={(row) => go({ page: "timeline", params: { q: "^" + String(row.top_op || row.name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") } })}
      />
    </div>
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
