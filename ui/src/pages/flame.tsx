// flame.tsx: the page Flame: costs by call stack or name scope as a flame graph, with a table of the same tree. Click
// zooms, the table filters along, "inverted" asks what calls the costly functions.
import { useMemo, useState } from "preact/hooks";
import { change, param } from "../address";
import { inReport, type Params, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import * as flame from "../parts/flame";
import { FlameCanvas, useFocus } from "../parts/flamecanvas";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { optionWords } from "../parts/view";

const METRICS: Record<string, string> = { micros: "time", accelerator_micros: "device time", cpu_micros: "host time", bytes: "memory asked for", peak_bytes: "peak memory", float_ops: "float operations", params: "parameters" };

export function FlamePage() {
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const sampled = (metrics.value?.rows.length ?? 0) > 0;
  // Without source lines and samples the name scopes are what there is.
  const view = param("view") === "scope" || (!param("view") && lines.value && metrics.value && !lines.value.rows.length && !sampled) ? "scope" : "code";
  const metric = param("metric") in METRICS ? param("metric") : "micros";
  const params: Params = { name: view, max_depth: 100, order_by: metric, select: metric };
  if (param("step")) params.step = param("step");
  const answer = useAnswer<TableData>(lines.value || lines.error ? "/api/view" : null, params);
  return (
    <div class="page">
      <div class="bar">
        {[["code", sampled ? "by call stack" : "by line of code"], ["scope", "by name scope"]].map(([name, title]) => (
          <button key={name} type="button" class={view === name ? "on" : ""} aria-pressed={view === name} onClick={() => change({ view: name, at: "" })}>{title}</button>
        ))}
        {!sampled && !inReport() && (
          <select aria-label="cost" value={metric} onChange={(e) => change({ metric: e.currentTarget.value, at: "" })}>
            {Object.entries(METRICS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
        )}
        <label><input type="checkbox" checked={param("inverted") === "1"} onChange={(e) => change({ inverted: e.currentTarget.checked ? "1" : "", at: "" })} /> inverted</label>
        <label><input type="checkbox" checked={param("up") === "1"} onChange={(e) => change({ up: e.currentTarget.checked ? "1" : "" })} /> root at the bottom</label>
        <input type="search" class="filter" aria-label="search functions (regular expression)" placeholder="/ search (regex)" value={param("q")} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
      </div>
      {answer.error ? <Failure text={answer.error} /> : !answer.value ? <Waiting /> : <Graph table={answer.value} metric={metric} command={command(view, ...(sampled && view === "code" ? ["--max-depth", "100"] : optionWords(params)))} view={view} />}
    </div>
  );
}

function Graph(p: { table: TableData; metric: string; command: string; view: string }) {
  const names = p.table.columns.map((c) => c.name);
  const total = names.includes("total_" + p.metric) ? "total_" + p.metric : names.includes("total") ? "total" : p.metric;
  const column = p.table.columns.find((c) => c.name === total) ?? { name: total, type: "real", unit: null };
  const inverted = param("inverted") === "1";
  const merged = param("only");
  const root = useMemo(() => {
    let tree = flame.fromRows(p.table.rows, total);
    if (merged) tree = flame.mergeNamed(tree, merged);
    if (inverted) tree = flame.invert(tree);
    flame.sortHeavy(tree);
    return tree;
  }, [p.table, total, inverted, merged]);
  const rows = useMemo(() => flame.byName(root), [root]);
  const focus = useFocus(root);
  const [hover, setHover] = useState<flame.Node | null>(null);
  const query = param("q");
  const matches = useMemo(() => {
    if (!query) return null;
    try {
      const regex = new RegExp(query, "i");
      return (name: string) => regex.test(name);
    } catch {
      return null;
    }
  }, [query]);

  const value = (n: number) => format.cell(n, column);
  const shown = matches ? rows.filter((row) => matches(String(row.name))) : rows;
  const columns = [{ name: "name", type: "text", unit: null }, { name: "self", type: column.type, unit: column.unit }, { name: "percent", type: "real", unit: "percent" }, { name: "total", type: column.type, unit: column.unit }];
  if (!root.children.length) return <Panel title="Flame graph"><Empty>{p.table.footer ?? (p.view === "code" ? "The files name no source lines with this cost, and no sampled stacks. Try by name scope, or another cost." : "There are no costs of this kind.")}</Empty></Panel>;
  return (
    <>
      <Panel title="Flame graph" remark={hover ? `${hover.name}: ${value(hover.total)}, ${format.percent((100 * hover.total) / Math.max(1e-9, root.total))}; own ${value(hover.self)}` : merged ? `only ${merged}` : focus !== root ? `inside ${focus.name}; click a caller above it to go back` : "click a box to zoom"} copies={{ command: p.command }}>
        {(merged || focus !== root) && <button type="button" onClick={() => change({ only: "", at: "" })}>show all</button>}
        <FlameCanvas focus={focus} up={param("up") === "1"} matches={matches} label="flame graph; the table below has the same numbers" onHover={setHover} />
      </Panel>
      <Panel title="By name" remark={format.plural(shown.length, "name")} copies={{ command: p.command, markdown: () => toMarkdown(columns, shown), csv: () => toCsv(columns, shown) }}>
        <Table label="costs by name" columns={columns} rows={shown} titles={{ self: "own", percent: "share of all", total: "with callees" }} bar="self" height={14} onOpen={(row: Row) => change({ only: String(row.name), at: "" })} />
      </Panel>
    </>
  );
}
