// start.tsx: the page Start: shows what `opwatch FILES` prints: the verdict, the steps, the costliest operations,
// findings, losses.
import { change, format as hash, go } from "../address";
import { inReport, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { rangeOf, useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { StepChart, median, stepRange } from "../parts/steps";
import { evidenceOf, hasSteps, timelineOf, Where } from "./advice";
import { MemoryCurve } from "./memory";
import { toCsv, toMarkdown } from "../parts/table";
import { View } from "../parts/view";

export function StartPage() {
  const verdict = useAnswer<TableData>("/api/view", { name: "verdict" });
  const work = useAnswer<TableData>("/api/view", { name: "work" });
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const timed = (work.value?.rows ?? []).some((row) => Number(row.time_ns) > 0);
  const heaps = useAnswer<TableData>("/api/view", { name: "heaps" });
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  const sampled = (metrics.value?.rows.length ?? 0) > 0;
  const remembered = (heaps.value?.rows.length ?? 0) > 0;
  const hasLines = (lines.value?.rows ?? []).some((row) => Number(row.line) > 0);
  return (
    <div class="page start">
      <section class="verdict">
        <Facts />
        {verdict.error ? <Failure text={verdict.error} /> : <p>{verdict.value ? String(verdict.value.rows[0]?.verdict ?? "There is nothing to say about these files.") : "…"}</p>}
        <Ways />
      </section>
      <div class="columns">
        <div class="main-column">
          <Steps />
          {timed && <View view="work" title="Operations by time" shown={["name", "time_ns", "percent", "runs"]} titles={{ percent: "share" }} bar="time_ns" height={10} empty="No operation was timed." onOpen={(row) => go({ page: "ops", params: { q: escape(String(row.name)) } })} />}
          {sampled && <View view="functions" title="Functions by own cost" shown={["name", "self", "self_percent", "total", "total_percent"]} titles={{ self: "own", self_percent: "own share", total: "with callees", total_percent: "share" }} bar="self" height={10} empty="No samples." onOpen={(row) => go({ page: "flame", params: { view: "samples", only: String(row.name) } })} />}
          {!timed && remembered && <MemoryCurve />}
          {!timed && !sampled && !remembered && work.value && heaps.value && <View view="op" title="Operations" params={{ select: "float_ops\noccurrence\nparams", order_by: "float_ops" }} bar="float_ops" height={10} empty="There are no operations." />}
        </div>
        <div class="side-column">
          <Findings />
          {lines.value && lines.value.rows.length > 0 && !hasLines ? null : <View view="lines" title="Lines of code" shown={sampled && !timed ? ["name", "self", "self_percent"] : ["name", "time_ns", "percent", "top_type"]} titles={{ percent: "share", top_type: "main type" }} bar={sampled && !timed ? "self" : "time_ns"} height={6} empty="The files name no lines of source code." onOpen={(row) => go({ page: "code", params: { file: String(row.file ?? ""), line: String(row.line ?? "") } })} />}
          <View view="devices" title="Devices" shown={["device", "kind", "events", "busy_ns", ...(steps.value?.rows.length ? ["busy_step_ns"] : [])]} titles={{ busy_step_ns: "busy per step" }} bar="busy_ns" height={6} empty="The files name no device." />
          <Losses />
        </div>
      </div>
    </div>
  );
}

const escape = (text: string) => "^" + text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";

/** Describes the recording in a few words: steps, ranks, devices. */
function Facts() {
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  const sources = useAnswer<TableData>("/api/view", { name: "sources" });
  const devices = useAnswer<TableData>("/api/view", { name: "devices" });
  const words: string[] = [];
  const ranks = [...new Set((sources.value?.rows ?? []).map((row) => row.rank).filter((rank) => rank !== null && rank !== undefined))];
  const producers = [...new Set((sources.value?.rows ?? []).map((row) => String(row.producer || row.format || "")))].filter(Boolean);
  const names = [...new Set((devices.value?.rows ?? []).filter((row) => row.kind !== "cpu").map((row) => /(?:gpu|tpu):\d+/i.exec(String(row.device))?.[0] ?? String(row.device)))];
  if (producers.length === 1) words.push(producers[0]);
  if (ranks.length) words.push(ranks.length === 1 ? `rank ${ranks[0]}` : format.plural(ranks.length, "rank"));
  const numbers = new Set((steps.value?.rows ?? []).map((row) => row.step)).size;
  if (numbers) words.push(format.plural(numbers, "step"));
  if (names.length) words.push(names.length <= 2 ? names.join(", ") : format.plural(names.length, "device"));
  return <div class="recorded">{words.join(" · ")}</div>;
}

/** Links from the verdict to its evidence and to what to change; without a finding to the costliest line or function. */
function Ways() {
  const advice = useAnswer<TableData>("/api/advise");
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const functions = useAnswer<TableData>("/api/view", { name: "functions" });
  if (!advice.value && !advice.error) return null;
  const first = (advice.value?.rows ?? []).find((row) => row.checked && (row.severity === "high" || row.severity === "medium"));
  const evidence = first && evidenceOf(first).map(timelineOf).find(Boolean);
  const named = first && /(?:^|, )(\S+):(\d+)/.exec(String(first.where ?? ""));
  const costly = (lines.value?.rows ?? []).find((row) => row.file && Number(row.line) > 0);
  const place = named && !named[1].includes("::") ? { file: named[1], line: named[2] } : costly ? { file: String(costly.file), line: String(costly.line) } : null;
  const function_ = !place && functions.value?.rows.find((row) => Number(row.self) > 0 && row.name);
  if (!first && !place && !function_) return null;
  return (
    <div class="ways">
      {evidence && !inReport() && <a class="button" href={hash({ page: "timeline", params: evidence })}>show evidence</a>}
      {place && !inReport() && <a class="button" title={named ? "the line that the finding names" : "the line that costs most"} href={hash({ page: "code", params: place })}>show {format.baseName(place.file)}:{place.line}</a>}
      {function_ && <a class="button" title="the function that costs most: who calls it, and what it calls" href={hash({ page: "flame", params: { view: "samples", only: String(function_.name) } })}>who calls {shorten(String(function_.name))}</a>}
      {first && <a class="button" href={hash({ page: "advice", params: { rule: String(first.rule) } })}>what to change</a>}
    </div>
  );
}

const shorten = (text: string) => (text.length > 40 ? "…" + text.slice(-39) : text);

function Steps() {
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  if (steps.error) return <Panel title="Steps"><Failure text={steps.error} /></Panel>;
  if (!steps.value) return <Panel title="Steps"><Waiting /></Panel>;
  const rows = steps.value.rows;
  const times = rows.map((row) => Number(row.duration_ns)).sort((a, b) => a - b);
  const columns = steps.value.columns.filter((c) => ["step", "rank", "duration_ns", "outlier"].includes(c.name));
  return (
    <Panel title="Steps" remark={rows.length ? format.plural(rows.length, "step") + (rows.length > 1 ? `, median ${format.time(median(times))} (${format.time(times[0])} to ${format.time(times[times.length - 1])})` : ` of ${format.time(times[0])}`) : undefined} copies={{ command: command("steps"), sql: "SELECT * FROM steps_view", markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
      {rows.length ? <StepChart rows={rows} chosen={rangeOf()} onBrush={inReport() ? undefined : (range) => change({ range: range ? `${range[0]}-${range[1]}` : "" })} onStep={(row) => go({ page: "timeline", params: { t: stepRange(row) } })} /> : <Empty>Nothing in the files marks a step. Option --step-marker names the slices that are steps.</Empty>}
    </Panel>
  );
}

export function Findings() {
  const advice = useAnswer<TableData>("/api/advise");
  if (advice.error) return <Panel title="Findings"><Failure text={advice.error} /></Panel>;
  if (!advice.value) return <Panel title="Findings"><Waiting /></Panel>;
  const found = advice.value.rows.filter((row) => row.checked && row.severity !== "info").slice(0, 4);
  const unchecked = advice.value.rows.filter((row) => !row.checked).length;
  const checked = advice.value.rows.length - unchecked;
  return (
    <Panel title="Findings" copies={{ command: command("advise"), sql: "SELECT * FROM finding", markdown: () => toMarkdown(advice.value?.columns ?? [], advice.value?.rows ?? []) }}>
      {found.length === 0 && <Empty>{checked === 0 ? "No rule could be checked on these files." : `${format.plural(checked, "rule")} could be checked, and none found a change that saves time.`}</Empty>}
      <ul class="findings">
        {found.map((row, i) => (
          <li key={i}>
            <b class="gain" title={typeof row.saving_high_ns === "number" ? `${hasSteps(advice.value) ? "a step" : "the recording"} gets up to ${format.time(row.saving_high_ns)} shorter when this is gone` : "how much time this costs is not known"}>{typeof row.saving_high_ns === "number" ? "−" + format.time(row.saving_high_ns) : "–"}</b>
            <span>
              <a href={"#/advice?rule=" + encodeURIComponent(String(row.rule))}>{String(row.what).split("\n")[0]}</a> <span class={"severity " + row.severity}>{String(row.severity)}</span>
              {row.where ? <small><WhereLinks row={row} /></small> : null}
            </span>
          </li>
        ))}
      </ul>
      {unchecked > 0 && <p class="fact">{format.plural(unchecked, "rule")} could not be checked: <a href="#/advice">why</a></p>}
    </Panel>
  );
}

/** Links for the place of a finding; a line of code links to the source. */
const WhereLinks = (p: { row: Row }) => <Where text={String(p.row.where)} evidence={evidenceOf(p.row)} />;

function Losses() {
  const notes = useAnswer<TableData>("/api/view", { name: "notes" });
  const rows = notes.value?.rows ?? [];
  if (!rows.length) return null;
  return (
    <Panel title="Notes on the files" copies={{ command: command("notes"), sql: "SELECT * FROM loss" }}>
      <ul class="notes">
        {rows.slice(0, 6).map((row, i) => (
          <li key={i}>
            <span class={"note " + row.kind}>{String(row.kind)}</span> {String(row.text)}
            {Number(row.count) > 1 && <small> ({format.count(Number(row.count))} times)</small>}
          </li>
        ))}
      </ul>
      {rows.length > 6 && <a href="#/files">and {rows.length - 6} more</a>}
    </Panel>
  );
}
