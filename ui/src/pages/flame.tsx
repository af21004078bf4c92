// flame.tsx: the page Flame: costs by call stack or name scope as a flame graph, with a table of the same tree. A click
// zooms, the table filters along, "inverted" shows the callers of costly functions, a row of the table shows a name
// between its callers and callees.
import { useMemo, useState } from "preact/hooks";
import { change, param } from "../address";
import { inReport, type Params, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { baseFiles, Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import * as flame from "../parts/flame";
import { FlameCanvas, useFocus } from "../parts/flamecanvas";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { optionWords } from "../parts/view";

const METRICS: Record<string, string> = { micros: "time", accelerator_micros: "device time", cpu_micros: "host time", bytes: "memory asked for", peak_bytes: "peak memory", float_ops: "float operations", params: "parameters" };

export function FlamePage() {
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const measured = metrics.value?.rows ?? [];
  // Stacks of operations and of samples are two trees; a file may have both.
  const ofOps = lines.value?.columns.some((c) => c.name === "time_ns") === true && lines.value.rows.length > 0;
  const ways: [string, string][] = [];
  if (measured.length && !(inReport() && ofOps)) ways.push(["samples", "sampled stacks"]);
  if (ofOps || !measured.length) ways.push(["code", "by line of code"]);
  ways.push(["scope", "by name scope"]);
  // Samples are shown first if the operations have no lines; without either, name scopes are shown.
  const hasLines = (lines.value?.rows ?? []).some((row) => Number(row.line) > 0);
  const usual = measured.length && !(ofOps && hasLines) ? "samples" : ofOps || !lines.value || !metrics.value ? "code" : "scope";
  const view = ways.some(([name]) => name === param("view")) ? param("view") : usual;
  const sampled = view === "samples";
  const metric = param("metric") in METRICS ? param("metric") : "micros";
  const chosen = String((measured.find((row) => row.name === param("measure")) ?? measured.find((row) => row.is_default === true) ?? measured[0])?.name ?? "");
  // A report contains one tree by code: of the operations, or of the samples if there are no operations.
  const params: Params = sampled && !inReport() ? { name: "code", max_depth: 100, metric: chosen } : { name: sampled ? "code" : view, max_depth: 100, order_by: metric, select: metric };
  if (param("step")) params.step = param("step");
  const answer = useAnswer<TableData>(lines.value || lines.error ? "/api/view" : null, params);
  return (
    <div class="page">
      <div class="bar">
        {ways.map(([name, title]) => (
          <button key={name} type="button" class={view === name ? "on" : ""} aria-pressed={view === name} onClick={() => change({ view: name, at: "", only: "" })}>{title}</button>
        ))}
        {sampled && measured.length > 1 && !inReport() && (
          <select aria-label="what was measured" value={chosen} onChange={(e) => change({ measure: e.currentTarget.value, at: "" })}>
            {[...new Set(measured.map((row) => String(row.name)))].map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        )}
        {!sampled && !inReport() && (
          <select aria-label="cost" value={metric} onChange={(e) => change({ metric: e.currentTarget.value, at: "" })}>
            {Object.entries(METRICS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
          </select>
        )}
        <Flag name="inverted" title="inverted" hint="callees first: what calls the costly functions" />
        <Flag name="up" title="root at the bottom" hint="" />
        <Flag name="names" title="by name" hint="boxes in the order of their names; otherwise the heaviest is at the left" />
        <Flag name="norecursion" title="collapse recursion" hint="a function that calls itself is one box" />
        {baseFiles.value.length > 0 && <a class="button" href="#/compare">difference to the base</a>}
        <input type="search" class="filter" aria-label="search functions (regular expression)" placeholder="/ search (regex)" value={param("q")} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
      </div>
      {answer.error ? <Failure text={answer.error} /> : !answer.value ? <Waiting /> : <Graph table={answer.value} metric={metric} command={command(String(params.name), ...optionWords(params))} view={view} />}
    </div>
  );
}

function Flag(p: { name: string; title: string; hint: string }) {
  return <label title={p.hint}><input type="checkbox" checked={param(p.name) === "1"} onChange={(e) => change({ [p.name]: e.currentTarget.checked ? "1" : "", at: "" })} /> {p.title}</label>;
}

const listOf = (name: string) => new Set(param(name) ? param(name).split("\n") : []);
const addTo = (list: string, name: string) => change({ [list]: [...listOf(list), name].join("\n"), only: "", at: "" });

function Graph(p: { table: TableData; metric: string; command: string; view: string }) {
  const names = p.table.columns.map((c) => c.name);
  const total = names.includes("total_" + p.metric) ? "total_" + p.metric : names.includes("total") ? "total" : p.metric;
  const column = p.table.columns.find((c) => c.name === total) ?? { name: total, type: "real", unit: null };
  const [inverted, byNames, collapsed] = ["inverted", "names", "norecursion"].map((name) => param(name) === "1");
  const order = byNames ? flame.sortNames : flame.sortHeavy;
  const whole = useMemo(() => {
    let tree = flame.fromRows(p.table.rows, total);
    if (param("drop") || param("merge")) tree = flame.without(tree, listOf("drop"), listOf("merge"));
    return collapsed ? flame.collapse(tree) : tree;
  }, [p.table, total, collapsed, param("drop"), param("merge")]);
  const merged = useMemo(() => flame.nameIn(whole, param("only")), [whole, param("only")]);
  const root = useMemo(() => {
    const tree = inverted ? flame.invert(whole) : whole;
    order(tree);
    return tree;
  }, [whole, inverted, byNames]);
  const focus = useFocus(root);
  const rows = useMemo(() => flame.byName(merged ? whole : focus), [whole, focus, merged]);
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
  if (!root.children.length && !param("drop")) return <Panel title="Flame graph"><Empty>{p.table.footer ?? (p.view === "code" ? "The files name no source lines with this cost, and no sampled stacks. Try by name scope, or another cost." : "There are no costs of this kind.")}</Empty></Panel>;
  const explain = hover ? `${hover.name}: ${value(hover.total)}, ${format.percent((100 * hover.total) / Math.max(1e-9, root.total))}; own ${value(hover.self)}` : null;
  return (
    <>
      <Changes />
      {merged ? <Sandwich whole={whole} name={merged} order={order} matches={matches} value={value} command={p.command} /> : (
        <Panel title="Flame graph" remark={explain ?? (focus !== root ? `inside ${focus.name}; click a caller above it to go back` : "click a box to zoom")} copies={{ command: p.command }}>
          {focus !== root && (
            <div class="bar">
              <button type="button" onClick={() => change({ at: "" })}>show all</button>
              <button type="button" title="who calls it, and what it calls" onClick={() => change({ only: focus.name, at: "" })}>callers and callees</button>
              <button type="button" title="leave it and what it calls out" onClick={() => addTo("drop", focus.name)}>drop</button>
              <button type="button" title="count its own cost for its callers" onClick={() => addTo("merge", focus.name)}>merge into callers</button>
            </div>
          )}
          <FlameCanvas focus={focus} up={param("up") === "1"} matches={matches} label="flame graph; the table below has the same numbers" onHover={setHover} />
        </Panel>
      )}
      <Panel title="By name" remark={format.plural(shown.length, "name") + (focus !== root && !merged ? ` inside ${focus.name}` : "") + "; a row shows who calls it and what it calls"} copies={{ command: p.command, markdown: () => toMarkdown(columns, shown), csv: () => toCsv(columns, shown) }}>
        <Table label="costs by name" columns={columns} rows={shown} titles={{ self: "own", percent: focus !== root && !merged ? "share of it" : "share of all", total: "with callees" }} bar="self" height={14} onOpen={(row: Row) => change({ only: String(row.name), at: "" })} isMarked={(row) => row.name === merged} />
      </Panel>
    </>
  );
}

/** Shows dropped and merged names, so that the user can restore them. */
function Changes() {
  const all = (["drop", "merge"] as const).flatMap((list) => [...listOf(list)].map((name) => [list, name] as const));
  if (!all.length) return null;
  return (
    <div class="bar">
      {all.map(([list, name]) => (
        <span class="chip part" key={list + name}>
          {list === "drop" ? "without " : "merged "}
          {name}
          <button type="button" aria-label={`show ${name} again`} onClick={() => change({ [list]: [...listOf(list)].filter((one) => one !== name).join("\n"), at: "" })}>×</button>
        </span>
      ))}
    </div>
  );
}

/** Shows a name between its callers and callees. */
function Sandwich(p: { whole: flame.Node; name: string; order: (root: flame.Node) => void; matches: ((name: string) => boolean) | null; value: (n: number) => string; command: string }) {
  const [hover, setHover] = useState<flame.Node | null>(null);
  const [callers, callees] = useMemo(() => {
    const trees = [flame.callersOf(p.whole, p.name), flame.mergeNamed(p.whole, p.name)];
    for (const tree of trees) p.order(tree);
    return trees.map((tree) => tree.children[0] ?? tree);
  }, [p.whole, p.name, p.order]);
  const pick = (node: flame.Node) => node.parent && change({ only: node.name });
  return (
    <Panel title={p.name} remark={hover ? `${hover.name}: ${p.value(hover.total)}, ${format.percent((100 * hover.total) / Math.max(1e-9, callees.total))} of it` : `${p.value(callees.total)}, own ${p.value(callees.self)}; ${format.percent((100 * callees.total) / Math.max(1e-9, p.whole.total))} of all`} copies={{ command: p.command }}>
      <div class="bar">
        <button type="button" onClick={() => change({ only: "", at: "" })}>show all</button>
        <button type="button" onClick={() => addTo("drop", p.name)}>drop</button>
        <button type="button" onClick={() => addTo("merge", p.name)}>merge into callers</button>
      </div>
      <h3>callers</h3>
      <FlameCanvas focus={rooted(callers)} up matches={p.matches} label={"what calls " + p.name} onHover={setHover} onPick={pick} />
      <h3>callees</h3>
      <FlameCanvas focus={rooted(callees)} matches={p.matches} label={"what " + p.name + " calls"} onHover={setHover} onPick={pick} />
    </Panel>
  );
}

/** The node without the row "all" above it. */
function rooted(node: flame.Node): flame.Node {
  node.parent = null;
  return node;
}
