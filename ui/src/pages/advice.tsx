// advice.tsx: the page Advice: every finding of the rules with its evidence, and the rules that could not be checked,
// with the reason. Evidence links to the timeline.
import { format as hash, param } from "../address";
import { inReport, type Cell, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command, zero } from "../parts/panel";
import { toCsv, toMarkdown } from "../parts/table";

interface Evidence {
  event?: number;
  ts_ns?: number;
  dur_ns?: number;
  track?: string;
  op?: string;
  line?: string;
  rank?: number;
  step?: number;
}

const text = (value: Cell | undefined) => (value === null || value === undefined ? "" : String(value));
const ns = (row: Row, key: string) => (typeof row[key] === "number" ? format.time(row[key] as number) : null);

function saving(row: Row): string | null {
  const [low, high] = [ns(row, "saving_low_ns"), ns(row, "saving_high_ns")];
  if (low && high) return low === high ? low : `${low} to ${high}`;
  return ns(row, "saving_high_ns");
}

/** Without steps in the files, findings are of the whole recording. */
export const hasSteps = (advice: TableData | undefined) => (advice as unknown as { steps_known?: boolean } | undefined)?.steps_known !== false;

export function evidenceOf(row: Row): Evidence[] {
  const value = row.evidence as unknown;
  if (Array.isArray(value)) return value as Evidence[];
  if (typeof value === "string" && value.startsWith("[")) {
    try {
      return JSON.parse(value) as Evidence[];
    } catch {
      return [];
    }
  }
  return [];
}

export function AdvicePage() {
  const advice = useAnswer<TableData>("/api/advise");
  if (advice.error) return <Failure text={advice.error} />;
  if (!advice.value) return <Waiting />;
  const { rows, columns } = advice.value;
  const found = rows.filter((row) => row.checked);
  const unchecked = rows.filter((row) => !row.checked);
  const chosen = param("rule");
  const all = advice.value as unknown as Record<string, number | undefined>;
  return (
    <div class="page">
      <Panel title="Findings" remark={format.plural(found.length, "finding")} copies={{ command: command("advise"), sql: "SELECT * FROM finding", markdown: () => toMarkdown(columns, found), csv: () => toCsv(columns, rows) }}>
        {typeof all.step_ns === "number" && typeof all.step_if_all_ns === "number" && (
          <p class="fact">
            {hasSteps(advice.value) ? "A steady step" : "The recording, in which nothing marks a step,"} takes <b>{format.time(all.step_ns)}</b>; with everything below gone, at best <b>{format.time(all.step_if_all_ns)}</b>.
          </p>
        )}
        {!found.length && <Empty>{rows.length === unchecked.length ? "No rule could be checked on these files." : "The rules that could be checked found nothing to change."}</Empty>}
        <div class="cards">
          {found.map((row, i) => (
            <Finding key={i} row={row} on={chosen === row.rule} steps={hasSteps(advice.value)} />
          ))}
        </div>
      </Panel>
      <Panel title="Rules that could not be checked" remark={format.plural(unchecked.length, "rule")} copies={{ command: command("advise"), sql: "SELECT * FROM finding WHERE NOT checked" }}>
        {!unchecked.length && <Empty>All rules had the data that they need.</Empty>}
        <table class="facts">
          <tbody>
            {unchecked.map((row, i) => (
              <tr key={i}>
                <th scope="row">{text(row.rule).replace(/_/g, " ")}</th>
                <td>{text(row.why_not) || text(row.what)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Panel>
    </div>
  );
}

function evidenceTitle(e: Evidence, steps: boolean): string {
  const step = steps && e.step !== undefined && e.step !== null ? "step " + e.step : "";
  return [e.op ?? (e.event ? "event " + e.event : step ? "" : "a moment"), e.rank !== undefined && e.rank !== null ? "rank " + e.rank : "", step, e.dur_ns ? format.time(e.dur_ns) : ""].filter(Boolean).join(", ");
}

/** The address of a piece of evidence on the timeline: the event, and a range around its time. */
export function timelineOf(e: Evidence): Record<string, string> | null {
  const to: Record<string, string> = {};
  if (e.event) to.sel = "e" + e.event;
  if (typeof e.ts_ns === "number") {
    const [start, length] = [e.ts_ns - zero.value, Math.max(e.dur_ns ?? 0, 1000)];
    to.t = `${Math.round(start - length)}-${Math.round(start + 2 * length)}`;
    to.m = `${Math.round(start)}-${Math.round(start + length)}`;
  }
  return to.sel || to.t ? to : null;
}

/** Whether a finding names an event: by its number, its operation, or a line of its stack. */
export function concerns(row: Row, info: { event: number; name: string; op: string; stack: { file: string; line: number }[] }): boolean {
  const lines = new Set(info.stack.filter((f) => f.line > 0).map((f) => `${format.baseName(f.file)}:${f.line}`));
  const lineOf = (text: string) => /([^/\s]+:\d+)/.exec(text)?.[1] ?? "";
  return evidenceOf(row).some((e) => (!!e.event && e.event === info.event) || (!!e.op && (e.op === info.name || e.op === info.op))) || text(row.where).split(", ").some((part) => part === info.name || (!!info.op && part === info.op) || lines.has(lineOf(part)));
}

/** "train.py:42" as a link to the page Code. */
function CodeLink(p: { line: string }) {
  const at = /^(.*):(\d+)/.exec(p.line);
  return at && !inReport() ? <a href={hash({ page: "code", params: { file: at[1], line: at[2] } })} title="show the source">{p.line}</a> : <>{p.line}</>;
}

/** Links for the place of a finding: operations that are evidence link to all their events, lines link to the code;
 * the rest is text. */
export function Where(p: { text: string; evidence: Evidence[] }) {
  const ops = new Set(p.evidence.map((e) => e.op));
  return (
    <>
      {p.text.split(", ").map((part, i) => (
        <span key={i}>
          {i > 0 && ", "}
          {/^\S+:\d+/.test(part) && !part.includes("::") ? <CodeLink line={part} /> : ops.has(part) && !inReport() ? <a href={hash({ page: "timeline", params: { q: "^" + part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$" } })}>{part}</a> : part}
        </span>
      ))}
    </>
  );
}

function Finding(p: { row: Row; on: boolean; steps: boolean }) {
  const { row } = p;
  const gain = saving(row);
  const confidence = typeof row.confidence === "number" ? format.percent(100 * row.confidence) : text(row.confidence);
  const evidence = evidenceOf(row);
  return (
    <article class={"card" + (p.on ? " on" : "")} id={text(row.rule)}>
      <header>
        <span class={"severity " + row.severity}>{text(row.severity)}</span>
        <b>{text(row.rule).replace(/_/g, " ")}</b>
        <span class="spacer" />
        {gain && <span title={`what ${p.steps ? "a step" : "the recording"} gets shorter when this is gone`}>saves {gain}{p.steps && " per step"}</span>}
        {confidence && <small>confidence {confidence}</small>}
      </header>
      <p class="what">{text(row.what)}</p>
      <dl>
        {row.where && (
          <>
            <dt>where</dt>
            <dd><Where text={text(row.where)} evidence={evidence} /></dd>
          </>
        )}
        {row.advice && (
          <>
            <dt>try</dt>
            <dd>{text(row.advice)}</dd>
          </>
        )}
        {row.falsified_by && (
          <>
            <dt>wrong if</dt>
            <dd>{text(row.falsified_by)}</dd>
          </>
        )}
        {evidence.length > 0 && (
          <>
            <dt>evidence</dt>
            <dd>
              <ul>
                {evidence.slice(0, 8).map((e, i) => (
                  <li key={i}>
                    {timelineOf(e) && !inReport() ? <a href={hash({ page: "timeline", params: timelineOf(e) ?? {} })} title="show in the timeline">{evidenceTitle(e, p.steps)}</a> : evidenceTitle(e, p.steps)}
                    {e.line && <> · <CodeLink line={e.line} /></>}
                  </li>
                ))}
                {evidence.length > 8 && <li>and {evidence.length - 8} more: {command("advise", "--json")}</li>}
              </ul>
            </dd>
          </>
        )}
      </dl>
    </article>
  );
}
