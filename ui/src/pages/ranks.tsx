// ranks.tsx: the page Ranks: the results of `opwatch ranks` for a job: which ranks are missing, which rank is to blame,
// the own work of each rank in each step compared with its peers, the offsets of the clocks and their certainty. Every
// picture has a table with the same numbers.
import { useMemo, useState } from "preact/hooks";
import { change, go, param } from "../address";
import type { Row, Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { stepRange } from "../parts/steps";
import { Table, toCsv, toMarkdown } from "../parts/table";

interface Named {
  rank: number | null;
  file: string;
}
interface RanksTable extends TableData {
  world_size: number | null;
  missing_ranks: number[];
  duplicates: Named[];
  left_out: Named[];
  mixed_why: string | null;
  step_ns: number | null;
  slowdown: number | null;
  clock: string;
  clock_why: string | null;
  wait_why: string | null;
  blame: string;
  blamed: number[];
  blame_why: string | null;
  bandwidth: Row[];
  map: { steps: number[]; rows: (number | null)[][] };
}

const column = (name: string, type: string, unit: string | null) => ({ name, type, unit });
const MAP_COLUMNS = [column("rank", "int", null), column("step", "int", null), column("own_work_to_peers", "real", null), column("duration_ns", "int", "ns")];
const BANDWIDTH_COLUMNS = [column("collective", "text", null), column("bytes", "int", "bytes"), column("count", "int", "count"), column("transfer_ns", "int", "ns"), column("bus_bytes_per_s", "int", "bytes")];
const WORK = ["rank", "dp", "stage", "role", "host", "step_ns", "own_work_ns", "wait_ns", "transfer_ns", "straggler", "slowdown_caused", "cause", "evidence"];
const CLOCKS = ["rank", "host", "clock_offset_ns", "clock_likely_ns", "clock_proven_ns", "clock_drift_ppm", "pairs_used", "pairs_rejected", "file"];
const SLOW = "#d55e00";
const FAST = "#3b7dc4";

/** Writes numbers as ranges: 2, 5 to 127. */
export function rangesOf(numbers: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let last = i;
    while (last + 1 < numbers.length && numbers[last + 1] === numbers[last] + 1) last++;
    parts.push(last > i ? `${numbers[i]} to ${numbers[last]}` : String(numbers[i]));
    i = last + 1;
  }
  return parts.slice(0, 20).join(", ") + (parts.length > 20 ? ", …" : "");
}

function filesOf(named: Named[]): string {
  return named.slice(0, 5).map((one) => one.file).join(", ") + (named.length > 5 ? ` and ${named.length - 5} more` : "");
}

/** Sentences about files that do not belong together, then about the clocks. */
function identity(t: RanksTable): string[] {
  const out: string[] = [];
  if (t.mixed_why) out.push(`These files do not belong to one job: ${t.mixed_why}.`);
  if (t.left_out.length) out.push(`Left out: ${filesOf(t.left_out)}.`);
  if (t.duplicates.length) out.push(`Copies, which are left out: ${filesOf(t.duplicates)}.`);
  if (t.missing_ranks.length) out.push(`Missing ranks: ${rangesOf(t.missing_ranks)}.`);
  out.push(t.world_size === null ? `${format.plural(t.rows.length, "worker")}; the files do not say how many there are.` : `${t.rows.length} of ${t.world_size} ranks.`);
  return out;
}

function clockText(t: RanksTable): string {
  const what = t.clock === "shared" ? "All times come from one clock." : t.clock === "fitted" ? "Clocks are fitted to the collectives that ranks share." : "The clocks of the ranks cannot be compared.";
  const waits = t.clock !== "impossible" && t.wait_why ? ` Waits are unknown: ${t.wait_why}.` : "";
  return what + (t.clock_why ? ` ${t.clock_why}.` : "") + waits;
}

function blameText(t: RanksTable): string {
  if (t.blame !== "none") return `Blame: ${t.blame} ${t.blamed.join(", ")}: ${t.blame_why ?? ""}.`;
  return t.blame_why ? `No rank is blamed: ${t.blame_why}.` : "No straggler: no rank stands out from its peers.";
}

export function RanksPage() {
  const answer = useAnswer<RanksTable>("/api/ranks");
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  if (answer.error) return <div class="page"><Panel title="Ranks" copies={{ command: command("ranks") }}><Failure text={answer.error} /></Panel></div>;
  if (!answer.value) return <div class="page"><Waiting what="The files of all ranks are read and compared." /></div>;
  const t = answer.value;
  if (t.rows.length < 2) {
    return (
      <div class="page">
        <Panel title="Ranks" copies={{ command: command("ranks") }}>
          <Empty page="ranks">{t.rows.length ? `Only one ${t.rows[0].rank === null ? "worker" : "rank"} is here: there is nothing to compare it with. Open the files of all ranks of a job together: opwatch ui rank*.json.gz` : (t.footer ?? "No rank is here.")}</Empty>
          {t.rows.length > 0 && identity(t).map((text) => <p key={text} class="fact">{text}</p>)}
        </Panel>
      </div>
    );
  }
  return <Ranks table={t} steps={steps.value?.rows ?? []} />;
}

function Ranks(p: { table: RanksTable; steps: Row[] }) {
  const t = p.table;
  const rows = useMemo(() => t.rows.map((row, i) => {
    const evidence = row.evidence as unknown as { what?: string }[] | null;
    return { ...row, rank: row.rank ?? numberOf(t, i), evidence: (evidence ?? []).map((one) => one.what).filter(Boolean).join("; ") || null } as unknown as Row;
  }), [t]);
  const titles = { step_ns: "step", own_work_ns: "own work", wait_ns: "wait for others", transfer_ns: "transfer", slowdown_caused: "slowdown caused", clock_offset_ns: "offset", clock_likely_ns: "likely ± (95 %)", clock_proven_ns: "proven ±", clock_drift_ppm: "drift ppm" };
  const shown = (names: string[]) => t.columns.filter((c) => names.includes(c.name));
  const copies = (names: string[], columns: string) => ({ command: command("ranks"), sql: `SELECT rank, host, ${columns} FROM job_rank ORDER BY rank`, markdown: () => toMarkdown(shown(names), rows), csv: () => toCsv(shown(names), rows) });
  return (
    <div class="page">
      <Panel title="Ranks" remark={t.step_ns === null ? undefined : `median steady step ${format.time(t.step_ns)}${t.slowdown === null ? "" : `, ${t.slowdown.toFixed(2)} times as long as with every rank like its peers`}`} class="verdict" copies={{ command: command("ranks"), sql: "SELECT * FROM job_rank ORDER BY rank", markdown: () => [blameText(t), ...identity(t), clockText(t)].join("\n") + "\n" }}>
        <p>{blameText(t)}</p>
        {[...identity(t), clockText(t)].map((text) => <div key={text} class="fact">{text}</div>)}
      </Panel>
      <MapPanel table={t} steps={p.steps} />
      <Panel title="Work of each rank" remark="per steady step" copies={copies(WORK, "step, own_work, wait, transfer, straggler, slowdown_caused, cause")}>
        <PickTwo table={t} />
        <Table label="work of each rank" columns={t.columns} rows={rows} shown={WORK} titles={titles} bar="own_work_ns" wide="evidence" height={16} isMarked={(row) => row.straggler !== "none"} />
      </Panel>
      <Panel title="Clocks" remark={clockText(t)} copies={copies(CLOCKS, "clock_offset, clock_likely, clock_proven, clock_drift_ppm, pairs_used, pairs_rejected")}>
        {t.clock === "fitted" && <Clocks rows={rows} />}
        <Table label="clocks" columns={t.columns} rows={rows} shown={CLOCKS} titles={titles} height={16} />
      </Panel>
      {t.bandwidth.length > 0 && (
        <Panel title="Collectives by size" copies={{ command: command("ranks"), sql: "SELECT kind, bytes, count(*) AS n, median(transfer) AS transfer FROM job_collective GROUP BY ALL ORDER BY kind, bytes", markdown: () => toMarkdown(BANDWIDTH_COLUMNS, t.bandwidth), csv: () => toCsv(BANDWIDTH_COLUMNS, t.bandwidth) }}>
          <Table label="collectives by size" columns={BANDWIDTH_COLUMNS} rows={t.bandwidth} titles={{ transfer_ns: "transfer (median)", bus_bytes_per_s: "bus bandwidth per second" }} height={12} />
        </Panel>
      )}
    </div>
  );
}

/** Chooses two ranks to compare with `opwatch diff`: initially the one to blame, or the one with the most own work,
 * against one that is like its peers. */
function PickTwo(p: { table: RanksTable }) {
  const t = p.table;
  const ranks = t.rows.filter((row) => typeof row.rank === "number");
  const byWork = useMemo(() => [...ranks].sort((a, b) => Number(a.own_work_ns) - Number(b.own_work_ns)).map((row) => Number(row.rank)), [t]);
  const [other, setOther] = useState(t.blamed[0] ?? byWork[byWork.length - 1]);
  const [base, setBase] = useState(byWork.find((_, i) => i >= (byWork.length - 1) >> 1 && byWork[i] !== other) ?? byWork[0]);
  if (ranks.length < 2) return null;
  const choose = (label: string, value: number, set: (rank: number) => void) => (
    <select aria-label={label} value={String(value)} onChange={(e) => set(Number(e.currentTarget.value))}>
      {ranks.map((row) => <option key={String(row.rank)} value={String(row.rank)}>rank {String(row.rank)}</option>)}
    </select>
  );
  return (
    <div class="bar">
      compare {choose("rank that is compared", other, setOther)} with {choose("rank that it is compared with", base, setBase)}
      <button type="button" disabled={base === other} onClick={() => go({ page: "compare", params: { base_rank: String(base), new_rank: String(other) } })}>compare</button>
    </div>
  );
}

/** The number of a worker; one without a rank in its file has the number that the map gives it. */
function numberOf(t: RanksTable, i: number): number | null {
  return t.map.rows.length === t.rows.length ? (t.map.rows[i][0] ?? i) : null;
}

interface MapCell {
  rank: number;
  step: number;
  own_work_to_peers: number | null;
  duration_ns: number | null;
  row: Row | null;
}

function MapPanel(p: { table: RanksTable; steps: Row[] }) {
  const t = p.table;
  const { map } = t;
  const byTime = param("by") === "duration";
  const asTable = param("as") === "table";
  const cells = useMemo(() => {
    const known = new Map(p.steps.map((row) => [`${row.rank}/${row.step}`, row]));
    return map.rows.map((line) => map.steps.map((step, x): MapCell => {
      const row = known.get(`${line[0]}/${step}`) ?? known.get(`null/${step}`) ?? null;
      return { rank: line[0] ?? 0, step, own_work_to_peers: line[x + 1] ?? null, duration_ns: row && row.rank !== null ? Number(row.duration_ns) : null, row };
    }));
  }, [t, p.steps]);
  const all = cells.flat();
  const rows = all.map(({ rank, step, own_work_to_peers, duration_ns }) => ({ rank, step, own_work_to_peers, duration_ns }) as Row);
  const hasTimes = all.some((cell) => cell.duration_ns !== null);
  if (!map.steps.length || !cells.length) return <Panel title="Ranks and steps"><Empty>The ranks have no steady steps in common: without steps that all of them recorded, their work cannot be compared step by step. Record more steps, or name the slices that are steps with --step-marker.</Empty></Panel>;
  return (
    <Panel title="Ranks and steps" remark={<span>{byTime ? "duration of each step on each rank" : "own work of each rank in each steady step, against the median of its peers"}{t.rows.length > cells.length ? `; the first ${cells.length} ranks` : ""}</span>} copies={{ command: command("ranks"), sql: "SELECT rank, step, own_work / peers_own_work AS own_work_to_peers, dur FROM job_step WHERE in_means ORDER BY rank, step", markdown: () => toMarkdown(MAP_COLUMNS, rows), csv: () => toCsv(MAP_COLUMNS, rows) }}>
      <div class="bar">
        {hasTimes && <button type="button" aria-pressed={byTime} class={byTime ? "on" : ""} onClick={() => change({ by: byTime ? "" : "duration" })}>durations</button>}
        <button type="button" aria-pressed={asTable} class={asTable ? "on" : ""} onClick={() => change({ as: asTable ? "" : "table" })}>as table</button>
      </div>
      {asTable ? <Table label="ranks and steps" columns={MAP_COLUMNS} rows={rows} titles={{ own_work_to_peers: "own work : peers" }} sort={byTime ? "-duration_ns" : "-own_work_to_peers"} height={20} onOpen={(row) => openStep(all.find((cell) => cell.rank === row.rank && cell.step === row.step)?.row)} /> : <Heat cells={cells} steps={map.steps} byTime={byTime} />}
    </Panel>
  );
}

function openStep(row: Row | null | undefined) {
  if (row) go({ page: "timeline", params: { t: stepRange(row) } });
}

function Heat(p: { cells: MapCell[][]; steps: number[]; byTime: boolean }) {
  const [at, setAt] = useState<[number, number] | null>(null);
  const times = p.cells.flat().map((cell) => cell.duration_ns).filter((ns): ns is number => ns !== null);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  const left = 64;
  const width = Math.max(8, Math.min(48, 1100 / p.steps.length));
  const height = Math.max(8, Math.min(24, 520 / p.cells.length));
  const every = Math.ceil(30 / width);
  const colour = (cell: MapCell) => {
    if (p.byTime) return cell.duration_ns === null ? "none" : `color-mix(in srgb, ${SLOW} ${high > low ? Math.round((100 * (cell.duration_ns - low)) / (high - low)) : 0}%, var(--bar))`;
    const ratio = cell.own_work_to_peers;
    if (ratio === null) return "none";
    return `color-mix(in srgb, ${ratio >= 1 ? SLOW : FAST} ${Math.round(Math.min(1, Math.abs(ratio - 1) * 2) * 100)}%, var(--raised))`;
  };
  const chosen = at ? p.cells[at[1]]?.[at[0]] : null;
  const onKey = (e: KeyboardEvent) => {
    const moves: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (e.key in moves) {
      const [x, y] = at ?? [0, 0];
      const [dx, dy] = at ? moves[e.key] : [0, 0];
      setAt([Math.max(0, Math.min(p.steps.length - 1, x + dx)), Math.max(0, Math.min(p.cells.length - 1, y + dy))]);
      e.preventDefault();
    } else if (e.key === "Enter" && chosen) {
      openStep(chosen.row);
      e.preventDefault();
    }
  };
  const more = (cell: MapCell) => (cell.own_work_to_peers === null ? "own work without peers to compare with" : `own work ${cell.own_work_to_peers.toFixed(3)} times that of its peers`);
  return (
    <figure class="heat">
      <div role="application" tabIndex={0} onKeyDown={onKey} aria-label="map of ranks and steps: arrow keys move, Enter shows the step in the timeline; the button as table has the numbers" onPointerLeave={() => setAt(null)}>
        <svg viewBox={`0 0 ${left + p.steps.length * width} ${18 + p.cells.length * height}`} style={{ width: left + p.steps.length * width + "px" }} aria-hidden="true">
          {p.cells.map((line, y) => (
            <g key={y}>
              {y % Math.ceil(11 / height) === 0 && <text class="axis end" x={left - 6} y={y * height + height / 2 + 4}>rank {line[0].rank}</text>}
              {line.map((cell, x) => <rect key={x} x={left + x * width + 0.5} y={y * height + 0.5} width={width - 1} height={height - 1} fill={colour(cell)} class={at && at[0] === x && at[1] === y ? "at" : ""} onPointerEnter={() => setAt([x, y])} onClick={() => openStep(cell.row)} />)}
            </g>
          ))}
          {p.steps.map((step, x) => x % every === 0 && <text key={x} class="axis" x={left + x * width + 2} y={p.cells.length * height + 13}>{step}</text>)}
        </svg>
      </div>
      <figcaption aria-live="polite">
        {chosen ? `rank ${chosen.rank}, step ${chosen.step}: ${more(chosen)}${chosen.duration_ns === null ? "" : `; the step took ${format.time(chosen.duration_ns)}`}` : p.byTime ? `from ${format.time(low)} (light) to ${format.time(high)} (dark)` : (
          <span class="legend"><span><i style={{ background: FAST }} />half as much as its peers, or less</span><span><i style={{ background: "var(--raised)" }} />like its peers</span><span><i style={{ background: SLOW }} />one and a half times as much, or more</span><span>down: ranks, across: steps; a click shows the step in the timeline</span></span>
        )}
      </figcaption>
    </figure>
  );
}

/** Shows each rank's clock against that of the first: a dot, the likely range (thick) and the certain range (thin). */
function Clocks(p: { rows: Row[] }) {
  const known = p.rows.filter((row) => typeof row.clock_offset_ns === "number").slice(0, 64);
  if (known.length < 2) return null;
  const value = (row: Row, name: string) => (typeof row[name] === "number" ? (row[name] as number) : 0);
  const edge = (sign: number) => known.map((row) => value(row, "clock_offset_ns") + sign * Math.max(value(row, "clock_proven_ns"), value(row, "clock_likely_ns")));
  const [low, high] = [Math.min(0, ...edge(-1)), Math.max(0, ...edge(1))];
  const [left, width, line] = [64, 836, 16];
  const x = (ns: number) => left + 8 + ((ns - low) / Math.max(1, high - low)) * (width - 16);
  return (
    <figure class="heat clocks">
      <svg viewBox={`0 0 ${left + width} ${known.length * line + 20}`} role="img" aria-label={`how far the clocks of ${known.length} ranks are apart; the table below has the numbers`} style={{ maxWidth: left + width + "px" }}>
        <line class="grid" x1={x(0)} x2={x(0)} y1={0} y2={known.length * line} />
        {known.map((row, i) => {
          const [offset, y] = [value(row, "clock_offset_ns"), i * line + line / 2];
          const bar = (name: string, thick: number) => <line x1={x(offset - value(row, name))} x2={x(offset + value(row, name))} y1={y} y2={y} stroke={FAST} stroke-width={thick} />;
          return (
            <g key={i}>
              <title>{`rank ${row.rank}: ${format.time(offset)}; likely ± ${format.cell(row.clock_likely_ns, { type: "int", unit: "ns" })}, proven ± ${format.cell(row.clock_proven_ns, { type: "int", unit: "ns" })}`}</title>
              <text class="axis end" x={left - 6} y={y + 4}>rank {String(row.rank)}</text>
              {bar("clock_proven_ns", 1)}
              {bar("clock_likely_ns", 5)}
              <circle cx={x(offset)} cy={y} r={3.5} fill={SLOW} />
            </g>
          );
        })}
        <text class="axis" x={x(low)} y={known.length * line + 14}>{format.time(low)}</text>
        <text class="axis end" x={x(high)} y={known.length * line + 14}>{format.time(high)}</text>
      </svg>
      <figcaption>add the offset to a rank's times to get those of the first rank · thick: likely (95 %) · thin: proven by the order of messages</figcaption>
    </figure>
  );
}
