// compare.tsx: the page Compare: this run against another one (--base), or two ranks of this one
// (?base_rank=0&new_rank=2), with the results of `opwatch diff`: the verdict with its statistics, the steps of both,
// the phases, a differential flame graph, and every cell that is new, gone or changed.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, format as hash, param } from "../address";
import { inReport, type Cell, type Params, type Row, type Table as TableData } from "../api";
import { PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { useAnswer } from "../load";
import { axisStep, axisTime, release, sized } from "../timeline/draw";
import { askCommand, useAsked } from "../parts/asked";
import * as flame from "../parts/flame";
import { FlameCanvas, useFocus } from "../parts/flamecanvas";
import { baseFiles, Empty, Failure, Panel, Waiting, files } from "../parts/panel";
import { median } from "../parts/steps";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { matcher } from "../parts/view";

interface Diff extends TableData {
  comparable: boolean;
  comparable_why: string | null;
  unit: string;
  runs_base: number;
  runs_new: number;
  base_step_ns: number | null;
  new_step_ns: number | null;
  delta_ns: number | null;
  delta_low_ns: number | null;
  delta_high_ns: number | null;
  detectable_ns: number | null;
  conclusion: string;
  unexplained_ns: number | null;
  sentence: string | null;
}

const signed = (ns: number) => (ns > 0 ? "+" : ns < 0 ? "−" : "±") + format.time(Math.abs(ns));

/** The two sides of the comparison: the ranks that the address names, or the files of the command line. */
interface Sides {
  query: Params;
  base: string[];
  other: string[];
  ranks: [number, number] | null;
}
function useSides(): Sides | null {
  const [a, b] = ["base_rank", "new_rank"].map((name) => (/^\d+$/.test(param(name)) ? Number(param(name)) : null));
  const pair = a !== null && b !== null && !inReport();
  const known = useAnswer<TableData>(pair ? "/api/view" : null, { name: "sources" });
  if (!pair) return baseFiles.value.length ? { query: {}, base: baseFiles.value, other: files.value, ranks: null } : null;
  const fileOf = (rank: number) => String(known.value?.rows.find((row) => row.rank === rank)?.path ?? `rank ${rank}`);
  return { query: { base_rank: a, new_rank: b }, base: [fileOf(a)], other: [fileOf(b)], ranks: [a, b] };
}
const diffCommand = (s: Sides) => ["opwatch", "diff", ...(s.base.length === 1 && s.other.length === 1 ? [s.base[0], s.other[0]] : ["--base", ...s.base, "--new", ...s.other])].map(format.shellWord).join(" ");
const SHOWN = ["op", "phase", "line", "rank", "base_ns", "new_ns", "delta_ns", "base_count", "new_count", "change", "q"];

export function ComparePage() {
  const sides = useSides();
  if (!sides)
    return (
      <div class="page">
        <Panel title="Compare">
          <Empty>There is nothing to compare with. Start the page with the other run:</Empty>
          <pre>opwatch ui {files.value.map(format.shellWord).join(" ")} --base OTHER</pre>
          {files.value.length > 1 && !inReport() && <p class="fact">Two ranks of one job are chosen on the page <a href="#/ranks">Ranks</a>.</p>}
        </Panel>
      </div>
    );
  return <Comparison sides={sides} />;
}

function Comparison(p: { sides: Sides }) {
  const { sides } = p;
  const diff = useAnswer<Diff>("/api/diff", sides.query);
  if (diff.error) return <div class="page"><Failure text={diff.error} /></div>;
  if (!diff.value) return <div class="page"><Waiting what={sides.ranks ? "The files of both ranks are read and compared." : "The runs are compared."} /></div>;
  const d = diff.value;
  return (
    <div class="page">
      {sides.ranks && <p class="fact">Rank {sides.ranks[1]} (new) against rank {sides.ranks[0]} (base) of one job. Ranks that wait for each other take equally long for a step: look at what fills it. <a href={hash({ page: "compare", params: { base_rank: String(sides.ranks[1]), new_rank: String(sides.ranks[0]) } })}>swap</a> · <a href="#/ranks">all ranks</a></p>}
      <section class="verdict"><p>{d.sentence ? d.sentence[0].toUpperCase() + d.sentence.slice(1) + "." : "The runs have no steps that could be compared."}</p></section>
      <div class="columns">
        <Panel title="The step" remark={<b class={d.conclusion === "slower" ? "worse" : ""}>{d.conclusion.replace(/_/g, " ")}</b>} copies={{ command: diffCommand(sides) }}>
          <table class="facts">
            <tbody>
              <tr><th scope="row">base</th><td>{d.base_step_ns === null ? "not known" : <b>{format.time(d.base_step_ns)}</b>} <small>mean steady step · {sides.base.map(format.baseName).join(", ")}</small></td></tr>
              <tr><th scope="row">new</th><td>{d.new_step_ns === null ? "not known" : <b>{format.time(d.new_step_ns)}</b>} <small>mean steady step · {sides.other.map(format.baseName).join(", ")}</small></td></tr>
              {d.delta_ns !== null && <tr><th scope="row">difference</th><td><b>{signed(d.delta_ns)}</b>{d.delta_low_ns !== null && d.delta_high_ns !== null ? ` (95 %: ${signed(d.delta_low_ns)} to ${signed(d.delta_high_ns)})` : ""}</td></tr>}
              {d.unexplained_ns !== null && <tr><th scope="row">unexplained</th><td>{signed(d.unexplained_ns)} <small>of the difference, where nothing was recorded</small></td></tr>}
              {d.detectable_ns !== null && <tr><th scope="row">detectable</th><td>{format.time(d.detectable_ns)} <small>a smaller change would not be seen</small></td></tr>}
              <tr><th scope="row">based on</th><td>{format.plural(d.runs_base, d.unit.replace(/s$/, ""))} against {d.runs_new}{d.unit === "recordings" && d.runs_base < 4 ? <small>: fewer than 4 a side show that recordings differ, not that the program does</small> : ""}</td></tr>
              {!sides.ranks && !inReport() && <tr><th scope="row">swap</th><td><code>{["opwatch", "ui", ...sides.base, ...sides.other.flatMap((file) => ["--base", file])].map(format.shellWord).join(" ")}</code></td></tr>}
              {!d.comparable && <tr><th scope="row">not comparable</th><td>{d.comparable_why}</td></tr>}
            </tbody>
          </table>
        </Panel>
        <StepsOfBoth sides={sides} />
      </div>
      <Phases rows={d.rows} sides={sides} />
      <Aligned sides={sides} />
      <DiffFlame sides={sides} />
      <Cells diff={d} sides={sides} />
    </div>
  );
}

/** Shows each step of both runs as a dot on one scale, with the medians. */
function StepsOfBoth(p: { sides: Sides }) {
  const ranks = p.sides.ranks;
  const base = useAnswer<TableData>("/api/view", ranks ? { name: "steps", rank: ranks[0] } : { name: "steps", base: 1 });
  const now = useAnswer<TableData>("/api/view", ranks ? { name: "steps", rank: ranks[1] } : { name: "steps" });
  const times = (t?: TableData) => (t?.rows ?? []).map((row) => Number(row.duration_ns)).filter((ns) => ns > 0);
  const sides: [string, number[]][] = [["base", times(base.value)], ["new", times(now.value)]];
  const most = Math.max(1, ...sides.flatMap(([, all]) => all));
  const toX = (ns: number) => 44 + (ns / most) * 560;
  const error = base.error ?? now.error;
  return (
    <Panel title="Steps" remark={sides.map(([name, all]) => `${name} ${format.plural(all.length, "step")}`).join(", ")} copies={{ command: diffCommand(p.sides) }}>
      {error && <Failure text={error} />}
      {sides.every(([, all]) => !all.length) ? <Empty>Nothing in the files of either side marks a step. Option --step-marker names the slices that are steps.</Empty> : (
        <figure class="steps">
          <svg viewBox="0 0 640 110" role="img" aria-label={sides.map(([name, all]) => `${name}: ${all.length} steps, median ${all.length ? format.time(median([...all].sort((a, b) => a - b))) : "not known"}`).join("; ")}>
            {[0, 0.5, 1].map((part) => <g key={part}><line class="grid" x1={toX(most * part)} x2={toX(most * part)} y1={4} y2={88} /><text class="axis middle" x={toX(most * part)} y={102}>{part ? format.time(most * part) : "0"}</text></g>)}
            {sides.map(([name, all], y) => {
              const middle = all.length ? median([...all].sort((a, b) => a - b)) : null;
              return (
                <g key={name}>
                  <text class="axis end" x={38} y={30 + y * 40}>{name}</text>
                  {all.slice(0, 2000).map((ns, i) => <circle key={i} cx={toX(ns)} cy={20 + y * 40 + ((i * 7919) % 13)} r={3} fill={PHASE_COLOURS[y ? "compute" : "synchronisation"]} fill-opacity={0.55} />)}
                  {middle !== null && <line x1={toX(middle)} x2={toX(middle)} y1={12 + y * 40} y2={40 + y * 40} class="roofline" />}
                </g>
              );
            })}
          </svg>
          <figcaption>a dot is a step; the line is the median</figcaption>
        </figure>
      )}
    </Panel>
  );
}

function Phases(p: { rows: Row[]; sides: Sides }) {
  const sums = useMemo(() => {
    const by = new Map<string, Row>();
    for (const row of p.rows) {
      const phase = String(row.phase ?? "");
      const sum = by.get(phase) ?? ({ phase, base_ns: 0, new_ns: 0, delta_ns: 0 } as Row);
      for (const key of ["base_ns", "new_ns", "delta_ns"]) sum[key] = Number(sum[key]) + (Number(row[key]) || 0);
      by.set(phase, sum);
    }
    return [...by.values()].sort((a, b) => Math.abs(Number(b.delta_ns)) - Math.abs(Number(a.delta_ns)));
  }, [p.rows]);
  const most = Math.max(1, ...sums.flatMap((row) => [Number(row.base_ns), Number(row.new_ns)]));
  const columns = ["phase", "base_ns", "new_ns", "delta_ns"].map((name, i) => ({ name, type: i ? "int" : "text", unit: i ? "ns" : null }));
  if (!sums.length) return null;
  return (
    <Panel title="Phases" remark="per step; upper bar base, lower bar new" copies={{ command: diffCommand(p.sides), markdown: () => toMarkdown(columns, sums), csv: () => toCsv(columns, sums) }}>
      <table class="phases">
        <thead><tr><th scope="col">phase</th><th scope="col"><span class="hidden">bars</span></th><th scope="col" class="number">base</th><th scope="col" class="number">new</th><th scope="col" class="number">difference</th></tr></thead>
        <tbody>
          {sums.map((row) => {
            const phase = String(row.phase);
            return (
              <tr key={phase}>
                <th scope="row"><i class="swatch" style={{ background: PHASE_COLOURS[phase] ?? PHASE_COLOURS.unknown }} />{PHASE_TITLES[phase] ?? phase}</th>
                <td class="bars">{["base_ns", "new_ns"].map((key) => <span key={key} class={key} style={{ width: (100 * Number(row[key])) / most + "%", background: PHASE_COLOURS[phase] ?? PHASE_COLOURS.unknown }} />)}</td>
                <td class="number" title={row.base_ns + " ns"}>{format.time(Number(row.base_ns))}</td>
                <td class="number" title={row.new_ns + " ns"}>{format.time(Number(row.new_ns))}</td>
                <td class={"number " + (Number(row.delta_ns) > 0 ? "worse" : "better")} title={row.delta_ns + " ns"}>{signed(Number(row.delta_ns))}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Panel>
  );
}

/** Shows the step nearest to the median of each side, one below the other, on one scale from its start. */
function Aligned(p: { sides: Sides }) {
  const ranks = p.sides.ranks;
  const first = useAsked("step_slices", ranks ? { rank: ranks[0] } : { only_run: "base" });
  const second = useAsked("step_slices", ranks ? { rank: ranks[1] } : { only_run: "new" });
  const [at, setAt] = useState<Row | null>(null);
  const lanes = useMemo(() => [first.value, second.value].map((table) => lanesOf(table?.rows ?? [])), [first.value, second.value]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useRef<{ x: number; y: number; width: number; row: Row }[]>([]);
  const most = Math.max(1, ...lanes.flatMap((side) => side.flatMap((lane) => lane.rows.map((row) => Number(row.at_us) + Number(row.dur_us)))));
  const height = lanes.reduce((sum, side) => sum + 20 + side.length * LANE, 16);
  useEffect(() => {
    const draw = () => canvas.current && (boxes.current = paintLanes(canvas.current, lanes, most, height));
    draw();
    window.addEventListener("resize", draw);
    return () => {
      window.removeEventListener("resize", draw);
      release(canvas.current);
    };
  }, [lanes]);
  const error = first.error ?? second.error;
  const all = [...(first.value?.rows ?? []), ...(second.value?.rows ?? [])];
  if (inReport() || error) return null; // a build without SQL, or a report: only the other panels are shown
  if (!first.value || !second.value) return <Panel title="One step of each"><Waiting /></Panel>;
  if (!all.length) return null;
  const columns = (first.value.columns.length ? first.value : second.value).columns;
  const names = lanes.map((side, i) => `${i ? "new" : "base"}: step ${side[0]?.rows[0]?.step ?? "–"}`);
  return (
    <Panel title="One step of each" remark={at ? `${at.name}: ${format.time(Number(at.at_us) * 1e3)} after the start, for ${format.time(Number(at.dur_us) * 1e3)} on ${at.track}` : `the step nearest the median, from its start; ${names.join(", ")}; the longest 400 slices`} copies={{ command: ranks ? askCommand("step_slices", { rank: ranks[1] }) : ["opwatch", "ask", "step_slices", "--run", "base=" + p.sides.base.join(","), "--run", "new=" + p.sides.other.join(",")].map(format.shellWord).join(" "), markdown: () => toMarkdown(columns, all), csv: () => toCsv(columns, all) }}>
      <canvas ref={canvas} class="aligned" style={{ height: height + "px" }} role="img" aria-label={`slices of ${names.join(" and ")}, on one scale of time; copy as CSV has every slice`} onPointerMove={(e) => setAt(boxes.current.find((b) => e.offsetX >= b.x && e.offsetX < b.x + b.width && e.offsetY >= b.y && e.offsetY < b.y + LANE)?.row ?? null)} onPointerLeave={() => setAt(null)} />
    </Panel>
  );
}

const LANE = 14;
interface Lane {
  title: string;
  rows: Row[];
}
/** Makes a lane for each track and depth, for the outermost four depths of a track. */
function lanesOf(rows: Row[]): Lane[] {
  const by = new Map<string, Lane>();
  for (const row of rows) {
    if (Number(row.depth) > 3) continue;
    const key = `${row.track}\t${row.track_kind}\t${row.depth}`;
    const lane = by.get(key) ?? { title: Number(row.depth) ? "" : String(row.track ?? ""), rows: [] };
    lane.rows.push(row);
    by.set(key, lane);
  }
  return [...by.values()];
}

function paintLanes(canvas: HTMLCanvasElement, lanes: Lane[][], most: number, height: number) {
  const boxes: { x: number; y: number; width: number; row: Row }[] = [];
  const g = canvas.getContext("2d");
  const [ratio, width, left] = [window.devicePixelRatio || 1, canvas.clientWidth, 120];
  if (!g || !width) return boxes;
  sized(canvas, width * ratio, height * ratio);
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const style = getComputedStyle(canvas);
  const [text, faint, line] = ["--text", "--faint", "--line"].map((name) => style.getPropertyValue(name));
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  const toX = (us: number) => left + (us / most) * (width - left - 8);
  const step = axisStep({ from: 0, to: most * 1e3 }, 8) / 1e3;
  for (let us = 0; us <= most; us += step) {
    g.fillStyle = line;
    g.fillRect(toX(us), 0, 1, height - 14);
    g.fillStyle = faint;
    g.fillText(axisTime(us * 1e3, step * 1e3), toX(us) + 2, height - 7);
  }
  let y = 0;
  lanes.forEach((side, i) => {
    g.fillStyle = text;
    g.fillText(i ? "new" : "base", 4, y + 10);
    y += 18;
    for (const lane of side) {
      g.fillStyle = faint;
      g.fillText(lane.title.length > 18 ? lane.title.slice(0, 17) + "…" : lane.title, 4, y + LANE / 2);
      for (const row of lane.rows) {
        const x = toX(Number(row.at_us));
        const w = Math.max(1, toX(Number(row.at_us) + Number(row.dur_us)) - x);
        const colour = PHASE_COLOURS[String(row.phase)] ?? PHASE_COLOURS.unknown;
        g.fillStyle = colour;
        g.fillRect(x, y, Math.max(0.6, w - 0.5), LANE - 2);
        boxes.push({ x, y, width: w, row });
        const room = Math.floor((w - 6) / 6);
        if (room < 4) continue;
        const name = String(row.name);
        g.fillStyle = "#10151c";
        g.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, x + 3, y + LANE / 2 - 1, w - 4);
      }
      y += LANE;
    }
    y += 2;
  });
  return boxes;
}

/** Draws what `opwatch diff --to flamegraph` draws: as wide as in the new runs, red for more time, blue for less. */
function DiffFlame(p: { sides: Sides }) {
  const answer = useAnswer<TableData>("/api/diff", { ...p.sides.query, frames: 1 });
  const [hover, setHover] = useState<flame.Node | null>(null);
  const root = useMemo(() => flame.fromFrames(answer.value?.rows ?? []), [answer.value]);
  const most = useMemo(() => flame.mostDifferent(root), [root]);
  const focus = useFocus(root);
  if (answer.error) return <Panel title="Differential flame graph"><Failure text={answer.error} /></Panel>;
  if (!answer.value) return <Panel title="Differential flame graph"><Waiting /></Panel>;
  const column = answer.value.columns.find((c) => c.name === "new_ns") ?? { name: "new_ns", type: "int", unit: "ns" };
  const value = (n: Cell) => format.cell(n, column);
  const explain = (row: Row) => {
    const delta = Number(row.delta_ns);
    const own = Number(row.base_self_ns) !== Number(row.base_ns) || Number(row.new_self_ns) !== Number(row.new_ns);
    return `${row.name}: ${value(row.base_ns)} → ${value(row.new_ns)}, ${value(Math.abs(delta))} ${delta < 0 ? "less" : "more"}${own ? `; itself ${value(row.base_self_ns)} → ${value(row.new_self_ns)}` : ""}${row.change ? `; ${row.change}` : ""}${row.new_name ? `, now ${row.new_name}` : ""}`;
  };
  if (!root.children.length) return <Panel title="Differential flame graph"><Empty>The new runs have no time in any frame.</Empty></Panel>;
  return (
    <Panel title="Differential flame graph" remark={hover ? explain((hover as flame.DiffNode).row) : focus !== root ? `inside ${focus.name}; click a box above it to go back` : "as wide as in the new run; red takes more than in the base, blue less; click to zoom"} copies={{ command: diffCommand(p.sides) + " --to flamegraph --out diff.svg" }}>
      <FlameCanvas focus={focus} label="differential flame graph; the table below has the same differences" onHover={setHover} colourOf={(node) => flame.diffColour(Number((node as flame.DiffNode).row.delta_ns), most)} />
    </Panel>
  );
}

function Cells(p: { diff: Diff; sides: Sides }) {
  const { diff } = p;
  const kindOf = (row: Row) => (row.change ? String(row.change) : "unchanged");
  const kinds = [...new Set(diff.rows.map(kindOf))].sort();
  const kind = kinds.includes(param("change")) ? param("change") : "*";
  const all = useMemo(() => [...diff.rows].sort((a, b) => Math.abs(Number(b.delta_ns)) - Math.abs(Number(a.delta_ns))), [diff]);
  const rows = all.filter((row) => kind === "*" || kindOf(row) === kind).filter(matcher(param("q")));
  return (
    <Panel
      title="What changed"
      remark={<span>
        {["*", ...kinds].map((one) => <button key={one} type="button" class={one === kind ? "on" : ""} aria-pressed={one === kind} onClick={() => change({ change: one === "*" ? "" : one })}>{one === "*" ? "all" : one} {one === "*" ? diff.rows.length : diff.rows.filter((row) => kindOf(row) === one).length}</button>)}
        <input type="search" class="filter" placeholder="filter (regex)" aria-label="filter what changed" value={param("q")} onInput={(e) => change({ q: e.currentTarget.value }, true)} />
      </span>}
      copies={{ command: diffCommand(p.sides), markdown: () => toMarkdown(diff.columns, rows), csv: () => toCsv(diff.columns, rows) }}
    >
      {rows.length ? <Table label="what changed" columns={diff.columns} rows={rows} shown={SHOWN} titles={{ base_count: "base count", new_count: "new count", delta_ns: "difference" }} height={20} onOpen={(row) => (location.hash = hash({ page: "timeline", params: { q: "^" + String(row.new_op || row.op).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") } }))} /> : <Empty>No cell matches the filter and the kind of change above: choose all, or clear the filter.</Empty>}
    </Panel>
  );
}
