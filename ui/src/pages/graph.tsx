// graph.tsx: the page Graph: the dataflow of a TensorFlow or XLA graph, with scopes as single nodes until they are
// opened, or, for a trace, which operations call or launch which others. The colour shows the cost; the table has every
// node that is drawn.
import dagre from "@dagrejs/dagre";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { change, go, param } from "../address";
import type { Params, Row, Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { Table, flatten, toCsv, toMarkdown } from "../parts/table";
import { optionWords } from "../parts/view";

interface Node {
  id: number;
  ops: number;
  scope: boolean;
  name: string;
  type: string;
}
interface Answer {
  kind: "dataflow" | "calls";
  left_out: number;
  nodes: Node[];
  edges: [number, number, number, number][]; // from, to, count, 1 = control dependency or launch only
}
interface Placed extends Node {
  x: number;
  y: number;
  width: number;
  cost: number;
}
interface Drawn {
  left: number;
  nodes: Placed[];
  edges: { from: number; to: number; count: number; control: boolean; points: { x: number; y: number }[] }[];
  width: number;
  height: number;
}

const DRAWN_MOST = 250; // more nodes take seconds to lay out, and are not readable
const READ_MOST = 40;
const NODE_HEIGHT = 34;
const METRICS: Record<string, string> = { micros: "time", bytes: "memory asked for", float_ops: "float operations", params: "parameters" };
const UNITS: Record<string, string> = { micros: "us", bytes: "bytes", float_ops: "count", params: "count", time_ns: "ns" };
const COST_VIEW: Params = { name: "scope", max_depth: 1000, select: "micros\nbytes\nfloat_ops\nparams\noccurrence", order_by: "name" };

const opened = () => (param("open") ? param("open").split("\n") : []);
const lastPart = (name: string) => name.slice(name.lastIndexOf("/") + 1) || name;
const shorten = (text: string, most: number) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

export function GraphPage() {
  const graph = useAnswer<Answer>("/api/graph", { open: param("open") });
  const flow = graph.value?.kind === "dataflow";
  const costs = useAnswer<TableData>(graph.value ? "/api/view" : null, flow ? COST_VIEW : { name: "work" });
  if (graph.error) return <Failure text={graph.error} />;
  if (!graph.value || (!costs.value && !costs.error)) return <Waiting what="The graph and the costs of its nodes are computed." />;
  if (!graph.value.nodes.length || !graph.value.edges.length)
    return (
      <div class="page">
        <Panel title="Graph">
          <Empty page="graph">The files have no graph, and no events that call or launch others. A TensorFlow graph or profile, an XLA profile with its modules, or a trace with nested operations has one.</Empty>
        </Panel>
      </div>
    );
  return <Graph answer={graph.value} costs={costs.value ?? null} />;
}

/** The cost of each node, by its name: the number that the view prints for that scope, operation or type. */
function costOf(table: TableData | null, flow: boolean, metric: string): Map<string, number> {
  const column = flow ? "total_" + metric : "time_ns";
  const rows = table ? (flow ? flatten(table.rows) : table.rows) : [];
  return new Map(rows.map((row) => [String(row.name), Number(row[column] ?? row[metric]) || 0]));
}

function place(answer: Answer, shown: Node[], cost: Map<string, number>, flow: boolean): Drawn {
  const g = new dagre.graphlib.Graph();
  const ids = new Set(shown.map((n) => n.id));
  g.setGraph({ rankdir: flow ? "TB" : "LR", nodesep: 14, ranksep: flow ? 34 : 60, marginx: 8, marginy: 8, ranker: shown.length > 100 ? "longest-path" : "network-simplex" });
  g.setDefaultEdgeLabel(() => ({}));
  for (const node of shown) g.setNode(String(node.id), { width: Math.max(116, Math.min(220, 7 * Math.min(30, lastPart(node.name).length) + 20)), height: NODE_HEIGHT });
  const counts = new Map<string, { count: number; control: boolean }>();
  for (const [from, to, count, control] of answer.edges) {
    if (!ids.has(from) || !ids.has(to)) continue;
    const old = counts.get(from + " " + to);
    counts.set(from + " " + to, { count: count + (old?.count ?? 0), control: control === 1 && (old?.control ?? true) });
  }
  for (const key of counts.keys()) g.setEdge(...(key.split(" ") as [string, string]));
  dagre.layout(g);
  const size = g.graph();
  // Bends of edges may lie outside of the size that dagre reports.
  const bends = [...counts.keys()].flatMap((key) => g.edge(...(key.split(" ") as [string, string]))?.points ?? []);
  const left = Math.min(0, ...bends.map((q) => q.x - 8));
  const right = Math.max(size.width ?? 100, ...bends.map((q) => q.x + 8));
  return {
    left,
    width: Math.max(100, right - left),
    height: Math.max(60, size.height ?? 60),
    nodes: shown.map((node) => {
      const at = g.node(String(node.id));
      return { ...node, x: at.x, y: at.y, width: at.width, cost: cost.get(node.name) ?? 0 };
    }),
    edges: [...counts].map(([key, edge]) => {
      const [from, to] = key.split(" ");
      return { from: Number(from), to: Number(to), ...edge, points: g.edge(from, to)?.points ?? [] };
    }),
  };
}

/** The nodes from which `start` can be reached, or that it reaches, over any number of edges. */
function reach(edges: Answer["edges"], start: number, forward: boolean): Set<number> {
  const next = new Map<number, number[]>();
  for (const [from, to] of edges) {
    const [a, b] = forward ? [from, to] : [to, from];
    next.set(a, [...(next.get(a) ?? []), b]);
  }
  const seen = new Set([start]);
  for (const node of seen) for (const other of next.get(node) ?? []) seen.add(other);
  return seen;
}

function Graph(p: { answer: Answer; costs: TableData | null }) {
  const { answer } = p;
  const flow = answer.kind === "dataflow";
  const metric = flow && param("metric") in METRICS ? param("metric") : flow ? "micros" : "time_ns";
  const cost = useMemo(() => costOf(p.costs, flow, metric), [p.costs, flow, metric]);
  const all = param("all") === "1";
  const linked = useMemo(() => new Set(answer.edges.flatMap(([from, to]) => [from, to])), [answer]);
  const joined = answer.nodes.filter((n) => linked.has(n.id));
  const most = Math.max(0, ...joined.map((n) => cost.get(n.name) ?? 0));
  // In a large graph, nodes that cost next to nothing are left out: constants, handles, control.
  const costly = joined.filter((n) => (cost.get(n.name) ?? 0) > most / 1000);
  const candidates = all || joined.length <= READ_MOST || costly.length < 2 ? joined : costly;
  const tooMany = candidates.length > DRAWN_MOST;
  const drawn = useMemo(() => (tooMany ? null : place(answer, candidates, cost, flow)), [answer, cost, all, flow]);
  const chosen = answer.nodes.find((n) => n.name === param("node"));
  const chain = param("chain") === "1";
  const near = useMemo(() => {
    if (!chosen) return null;
    if (chain) return new Set([...reach(answer.edges, chosen.id, true), ...reach(answer.edges, chosen.id, false)]);
    return new Set([chosen.id, ...answer.edges.filter(([from, to]) => from === chosen.id || to === chosen.id).flatMap(([from, to]) => [from, to])]);
  }, [chosen, chain, answer]);
  const unit = UNITS[metric];
  const value = (n: number) => format.cell(n, { type: "int", unit });
  const rows: Row[] = useMemo(() => answer.nodes.map((n) => ({ name: n.name, kind: n.scope ? "scope" : n.type === n.name ? "" : n.type, ops: n.ops, cost: cost.get(n.name) ?? null, inputs: answer.edges.filter(([, to]) => to === n.id).length, outputs: answer.edges.filter(([from]) => from === n.id).length })), [answer, cost]);
  const columns = [{ name: "name", type: "text", unit: null }, { name: "kind", type: "text", unit: null }, { name: "ops", type: "int", unit: "count" }, { name: "cost", type: "int", unit }, { name: "inputs", type: "int", unit: "count" }, { name: "outputs", type: "int", unit: "count" }];
  const open = opened();
  const room = Math.max(300, window.innerWidth - 150);
  const scale = Number(param("z")) > 0 ? Math.max(0.2, Math.min(3, Number(param("z")))) : drawn ? Math.max(0.55, Math.min(1, room / drawn.width)) : 1;
  const openScope = (name: string) => change({ open: [...new Set([...open, name])].join("\n"), node: "" });
  const closeScope = (name: string) => change({ open: open.filter((one) => one !== name && !one.startsWith(name + "/")).join("\n"), node: "" });
  const shownCommand = flow ? command("scope", ...optionWords(COST_VIEW)) : command("work");
  return (
    <div class="page graph-page">
      <div class="bar">
        {flow && (
          <label>
            colour{" "}
            <select value={metric} onChange={(e) => change({ metric: e.currentTarget.value })}>
              {Object.entries(METRICS).map(([name, title]) => <option key={name} value={name}>{title}</option>)}
            </select>
          </label>
        )}
        {joined.length > READ_MOST && <label><input type="checkbox" checked={all} onChange={(e) => change({ all: e.currentTarget.checked ? "1" : "" })} /> nodes with less than 0.1 % of the largest cost</label>}
        <label><input type="checkbox" checked={chain} onChange={(e) => change({ chain: e.currentTarget.checked ? "1" : "" })} /> whole chain of the selection</label>
        {open.map((name) => <button key={name} type="button" class="chip" title={"close " + name} onClick={() => closeScope(name)}>{name} ×</button>)}
        <span class="spacer" />
        <span class="buttons">
          <button type="button" aria-label="zoom out" onClick={() => change({ z: String(Math.max(0.2, scale / 1.3).toFixed(2)) })}>−</button>
          <button type="button" onClick={() => change({ z: "" })}>fit</button>
          <button type="button" aria-label="zoom in" onClick={() => change({ z: String(Math.min(3, scale * 1.3).toFixed(2)) })}>+</button>
        </span>
        {chosen && (
          <>
            <b class="code">{shorten(chosen.name, 60)}</b>
            <span>{value(cost.get(chosen.name) ?? 0)}</span>
            {chosen.scope && <button type="button" onClick={() => openScope(chosen.name)}>open</button>}
            {!flow && <button type="button" onClick={() => go({ page: "timeline", params: { q: "^" + chosen.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$" } })}>timeline</button>}
          </>
        )}
      </div>
      <Panel title={flow ? "Dataflow" : "Calls and launches"} remark={`${format.plural(candidates.length, "node")}` + (answer.left_out ? `, ${answer.left_out} with less cost are left out` : "") + (flow ? "; a double click opens a scope" : "; dashed: launches")} copies={{ command: shownCommand, markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
        {drawn ? <Picture drawn={drawn} near={near} chosen={chosen?.id} value={value} onChoose={(n) => change({ node: n.name === chosen?.name ? "" : n.name })} onOpen={(n) => n.scope && openScope(n.name)} scale={scale} /> : <Empty>{candidates.length} nodes are too many to draw: close a scope. The table has them all.</Empty>}
      </Panel>
      <Panel title="Nodes" copies={{ command: shownCommand, markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
        <Table label="nodes of the graph" columns={columns} rows={rows} bar="cost" titles={{ cost: flow ? METRICS[metric] : "own time" }} sort="-cost" height={14} isMarked={(row) => row.name === chosen?.name} onOpen={(row) => (row.kind === "scope" && row.name === chosen?.name ? openScope(String(row.name)) : change({ node: String(row.name) }))} />
      </Panel>
    </div>
  );
}

function Picture(p: { drawn: Drawn; near: Set<number> | null; chosen?: number; value: (n: number) => string; onChoose: (n: Placed) => void; onOpen: (n: Placed) => void; scale: number }) {
  const { drawn, near } = p;
  const most = Math.max(1e-9, ...drawn.nodes.map((n) => n.cost));
  const box = useRef<HTMLDivElement>(null);
  // What does not fit begins with the node that was chosen, or with the costliest one.
  useLayoutEffect(() => {
    const first = drawn.nodes.find((n) => n.id === p.chosen) ?? drawn.nodes.reduce<Placed | undefined>((best, n) => (best && best.cost >= n.cost ? best : n), undefined);
    if (!box.current || !first) return;
    box.current.scrollLeft = (first.x - drawn.left) * p.scale - box.current.clientWidth / 2;
    box.current.scrollTop = first.y * p.scale - box.current.clientHeight / 2;
  }, [drawn, p.scale]);
  return (
    <div class="graph" ref={box} tabIndex={0} role="region" aria-label="picture of the graph; the table below has every node">
      <svg width={drawn.width * p.scale} height={drawn.height * p.scale} viewBox={`${drawn.left} 0 ${drawn.width} ${drawn.height}`} role="img" aria-label="graph">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
            <path d="M0,0 L8,4 L0,8 z" class="arrowhead" />
          </marker>
        </defs>
        {drawn.edges.map((e, i) => (
          <path key={i} class={"edge" + (e.control ? " control" : "") + (near ? (near.has(e.from) && near.has(e.to) ? " near" : " far") : "")} style={{ strokeWidth: Math.min(4, 1 + Math.log10(e.count)) }} d={"M" + e.points.map((q) => `${q.x.toFixed(1)},${q.y.toFixed(1)}`).join(" L")} marker-end="url(#arrow)">
            <title>{format.plural(e.count, "edge")}</title>
          </path>
        ))}
        {drawn.nodes.map((n) => (
          <g key={n.id} class={"node" + (n.scope ? " scope" : "") + (n.id === p.chosen ? " chosen" : "") + (near && !near.has(n.id) ? " far" : "")} transform={`translate(${n.x - n.width / 2},${n.y - NODE_HEIGHT / 2})`} onClick={() => p.onChoose(n)} onDblClick={() => p.onOpen(n)}>
            <rect width={n.width} height={NODE_HEIGHT} rx={n.scope ? 6 : 2} style={{ fill: `color-mix(in srgb, #d55e00 ${Math.round(50 * Math.sqrt(n.cost / most))}%, var(--raised))` }} />
            <text x={8} y={14}>{shorten(lastPart(n.name), Math.floor((n.width - 12) / 6.6))}</text>
            <text x={8} y={27} class="small">{[n.cost > 0 ? p.value(n.cost) : "", n.scope ? format.plural(n.ops, "op") : ""].filter(Boolean).join(" · ")}</text>
            <title>{`${n.name}\n${n.type}\n${p.value(n.cost)}`}</title>
          </g>
        ))}
      </svg>
    </div>
  );
}
