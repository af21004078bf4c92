// start.tsx: the page Start: what `opwatch FILES` prints: the verdict, the steps, what takes the time, findings, losses.
import { go } from "../address";
import type { Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { StepChart, median, stepRange } from "../parts/steps";
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
  const sampled = (metrics.value?.rows.length ?? 0) > 0;
  const remembered = (heaps.value?.rows.length ?? 0) > 0;
  const hasLines = (lines.value?.rows ?? []).some((row) => Number(row.line) > 0);
  return (
    <div class="page start">
      <section class="verdict">
        {verdict.error ? <Failure text={verdict.error} /> : <p>{verdict.value ? String(verdict.value.rows[0]?.verdict ?? "There is nothing to say about these files.") : "…"}</p>}
      </section>
      <div class="columns">
        <div>
          <Steps />
          {timed && <View view="work" title="Operations by time" shown={["name", "time_ns", "percent", "runs"]} titles={{ percent: "share" }} bar="time_ns" height={10} empty="No operation was timed." onOpen={(row) => go({ page: "ops", params: { q: escape(String(row.name)) } })} />}
          {sampled && <View view="functions" title="Functions by own cost" shown={["name", "self", "self_percent", "total", "total_percent"]} titles={{ self: "own", self_percent: "own share", total: "with callees", total_percent: "share" }} bar="self" height={10} empty="No samples." />}
          {!timed && remembered && <MemoryCurve />}
          {!timed && !sampled && !remembered && work.value && heaps.value && <View view="op" title="Operations" params={{ select: "float_ops\noccurrence\nparams", order_by: "float_ops" }} bar="float_ops" height={10} empty="There are no operations." />}
        </div>
        <div>
          <Findings />
          {lines.value && lines.value.rows.length > 0 && !hasLines ? null : <View view="lines" title="Lines of code" shown={sampled && !timed ? ["name", "self", "self_percent"] : ["name", "time_ns", "percent", "top_type"]} titles={{ percent: "share", top_type: "main type" }} bar={sampled && !timed ? "self" : "time_ns"} height={6} empty="The files name no lines of source code." onOpen={(row) => go({ page: "code", params: { file: String(row.file ?? ""), line: String(row.line ?? "") } })} />}
          <View view="devices" title="Devices" shown={["device", "kind", "events", "busy_ns", "busy_step_ns"]} titles={{ busy_step_ns: "busy per step" }} bar="busy_ns" height={6} empty="The files name no device." />
          <Losses />
        </div>
      </div>
    </div>
  );
}

const escape = (text: string) => "^" + text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";

function Steps() {
  const steps = useAnswer<TableData>("/api/view", { name: "steps" });
  if (steps.error) return <Panel title="Steps"><Failure text={steps.error} /></Panel>;
  if (!steps.value) return <Panel title="Steps"><Waiting /></Panel>;
  const rows = steps.value.rows;
  const times = rows.map((row) => Number(row.duration_ns)).sort((a, b) => a - b);
  const columns = steps.value.columns.filter((c) => ["step", "rank", "duration_ns", "outlier"].includes(c.name));
  return (
    <Panel title="Steps" remark={rows.length ? format.plural(rows.length, "step") + (rows.length > 1 ? `, median ${format.time(median(times))} (${format.time(times[0])} to ${format.time(times[times.length - 1])})` : ` of ${format.time(times[0])}`) : undefined} copies={{ command: command("steps"), sql: "SELECT * FROM steps_view", markdown: () => toMarkdown(columns, rows), csv: () => toCsv(columns, rows) }}>
      {rows.length ? <StepChart rows={rows} onStep={(row) => go({ page: "timeline", params: { t: stepRange(row) } })} /> : <Empty>Nothing in the files marks a step. Option --step-marker names the slices that are steps.</Empty>}
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
            <span class={"severity " + row.severity}>{String(row.severity)}</span> <a href={"#/advice?rule=" + encodeURIComponent(String(row.rule))}>{String(row.what).split("\n")[0]}</a>
            {row.where || typeof row.saving_high_ns === "number" ? (
              <small>
                {typeof row.saving_high_ns === "number" ? `saves up to ${format.time(row.saving_high_ns)}` : ""}
                {row.where && typeof row.saving_high_ns === "number" ? ": " : ""}
                {row.where ? String(row.where) : ""}
              </small>
            ) : null}
          </li>
        ))}
      </ul>
      {unchecked > 0 && <p class="fact">{format.plural(unchecked, "rule")} could not be checked: <a href="#/advice">why</a></p>}
    </Panel>
  );
}

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
