// sql.tsx: the page SQL: statements over all tables of the profile, named queries as a start, the tables with their
// columns. Queries only read, and the server limits their time and size.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { change, go, param } from "../address";
import { post, type Column, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { save, useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command, say, zero } from "../parts/panel";
import { Bars } from "../parts/bars";
import { Table, toCsv, toMarkdown } from "../parts/table";

export interface Query {
  name: string;
  title: string;
  doc: string;
  sql: string;
  params: { name: string; type: string; usual: string; doc: string }[];
}
interface TableInfo {
  name: string;
  doc: string;
  columns: { name: string; type: string; doc: string }[];
}

const FIRST = "SELECT name, count(*) AS runs, sum(dur) AS time_ns\nFROM event\nGROUP BY name\nORDER BY time_ns DESC\nLIMIT 20";

/** A named query with its parameters as literals: `$name` in its text. */
export function withUsual(query: Query): string {
  let text = query.sql.trim();
  for (const p of [...query.params].sort((a, b) => b.name.length - a.name.length)) text = text.split("$" + p.name).join(p.type === "text" ? "'" + p.usual.replace(/'/g, "''") + "'" : p.usual);
  return text;
}

/** Sets units by the ends of column names, as in all tables of opwatch. */
export function withUnits(table: TableData): TableData {
  return { ...table, columns: table.columns.map((c) => ({ ...c, unit: c.unit ?? (/_ns$|^dur$|^self_dur$/.test(c.name) ? "ns" : /_bytes$|^bytes$/.test(c.name) ? "bytes" : /percent$/.test(c.name) ? "percent" : null) })) };
}

/** The address of a row on the timeline: its event, or its time. Times of tables are those of the recording,
 * nanoseconds since 1970 or since the start. */
function placeOf(row: Row): Record<string, string> | null {
  const id = Number(row.event_id ?? ("dur" in row || "ts" in row ? row.id : undefined) ?? row.event);
  if (Number.isInteger(id) && id > 0) return { sel: "e" + id };
  const start = [row.ts, row.start_ns, row.ts_ns].find((value) => typeof value === "number") as number | undefined;
  if (start === undefined) return null;
  const end = typeof row.end_ns === "number" ? row.end_ns : start + (Number(row.dur ?? row.dur_ns ?? row.duration_ns) || 1e6);
  const [from, length] = [start - zero.value, Math.max(1000, end - start)];
  return from < 0 ? null : { t: `${Math.round(from - length * 0.1)}-${Math.round(from + length * 1.1)}` };
}

const isNumeric = (c: Column) => c.type === "int" || c.type === "real" || c.type === "number";
const canDraw = (table: TableData) => table.rows.length > 1 && table.columns.some(isNumeric);
const BARS_MOST = 200;

/** Draws the first column against one with numbers. */
function ResultChart(p: { table: TableData; onOpen?: (row: Row) => void }) {
  const numeric = p.table.columns.filter(isNumeric);
  const label = p.table.columns[0];
  const others = numeric.filter((c) => c !== label);
  const [chosen, setChosen] = useState("");
  const value = others.find((c) => c.name === chosen) ?? others[others.length - 1] ?? numeric[0];
  const rows = p.table.rows.slice(0, BARS_MOST);
  return (
    <div>
      {others.length > 1 && <label>height <select value={value.name} onChange={(e) => setChosen(e.currentTarget.value)}>{others.map((c) => <option key={c.name}>{c.name}</option>)}</select></label>}
      {p.table.rows.length > BARS_MOST && <span class="fact"> the first {BARS_MOST} rows</span>}
      <Bars label={`${value.name} by ${label.name}`} value={(n) => format.cell(n, value)} onOpen={p.onOpen && ((i) => p.onOpen?.(rows[i]))} bars={rows.map((row) => ({ label: format.cell(row[label.name], label), value: Number(row[value.name]) || 0, title: p.table.columns.map((c) => `${c.name} ${format.cell(row[c.name], c)}`).join(" · ") }))} />
    </div>
  );
}

const KEYWORDS = "all and any as asc between by case cast count cross desc describe distinct else end except exists explain filter first from full group having in inner intersect interval is join last left like limit not null nulls offset on or order outer over partition pivot qualify recursive right rows select show some summarize then union unnest using values when where window with".split(" ");
const TOKENS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|\b(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b|\b([A-Za-z_]\w*)\b/gi;

/** The statement with colours: words of the language, texts, numbers, remarks. It lies behind the text that one types. */
function coloured(text: string) {
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = match[1] ? "remark" : match[2] ? "text" : match[4] ? "number" : match[5] && KEYWORDS.includes(match[5].toLowerCase()) ? "word" : "";
    if (!kind) continue;
    out.push(text.slice(at, match.index), <span class={kind}>{match[0]}</span>);
    at = (match.index ?? 0) + match[0].length;
  }
  return [...out, text.slice(at)];
}

export function SqlPage() {
  const queries = useAnswer<Query[]>("/api/queries");
  const tables = useAnswer<TableInfo[]>("/api/tables");
  const [text, setText] = useState(param("query") || FIRST);
  const [result, setResult] = useState<TableData | null>(null);
  const [error, setError] = useState("");
  const [running, setRunning] = useState(false);
  const [took, setTook] = useState(0);
  const stop = useRef<AbortController | null>(null);
  const painted = useRef<HTMLPreElement>(null);
  const [hint, setHint] = useState("");
  const run = (statement: string, first = false) => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    const begin = performance.now();
    setRunning(true);
    setError("");
    setResult(null); // an answer to another question would mislead
    post("/api/sql", statement, mine.signal)
      .then((response) => response.json())
      .then((answer: TableData | TableData[]) => {
        const last = Array.isArray(answer) ? answer[answer.length - 1] : answer;
        setResult(last ? withUnits(last) : null);
        setTook(performance.now() - begin);
        setRunning(false);
      })
      .catch((e: Error) => {
        if (e.name === "AbortError") return;
        if (first) setHint(e.message); // the user has not asked yet: show a hint, not a failure
        else setError(e.message);
        setResult(null);
        setRunning(false);
      });
  };
  const submit = () => {
    change({ query: text });
    run(text);
  };
  useEffect(() => {
    const asked = param("query") || FIRST;
    setText(asked);
    run(asked, !param("query"));
    return () => stop.current?.abort();
  }, [param("query")]);
  const [chart, setChart] = useState(false);
  const saveAs = (kind: "csv" | "parquet") => {
    post("/api/sql?format=" + kind, param("query") || FIRST)
      .then(async (response) => save(await response.blob(), "answer." + kind))
      .catch((e: Error) => say(e.message));
  };
  const leads = result?.rows.some((row) => placeOf(row) !== null) ?? false;
  const openRow = (row: Row) => {
    const to = placeOf(row);
    if (to) go({ page: "timeline", params: to });
  };
  return (
    <div class="page sql-page">
      <div>
        <Panel title="SQL" remark="Ctrl-Enter runs; times are nanoseconds; queries only read">
          <div class="editor">
            <pre aria-hidden="true" ref={painted}>{coloured(text)}{"\n"}</pre>
            <textarea aria-label="SQL statement" spellcheck={false} rows={9} value={text} onInput={(e) => setText(e.currentTarget.value)} onScroll={(e) => painted.current?.scrollTo(e.currentTarget.scrollLeft, e.currentTarget.scrollTop)} onKeyDown={(e) => {
              if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
                submit();
                e.preventDefault();
              }
            }} />
          </div>
          <div class="bar">
            <button type="button" onClick={submit} disabled={running}>run</button>
            {running && <button type="button" onClick={() => {
              stop.current?.abort();
              setRunning(false);
            }}>stop waiting</button>}
            <select aria-label="named query" value="" onChange={(e) => {
              const query = queries.value?.find((q) => q.name === e.currentTarget.value);
              if (query) {
                setText(withUsual(query));
                change({ query: withUsual(query) });
              }
            }}>
              <option value="">named queries…</option>
              {(queries.value ?? []).map((q) => <option key={q.name} value={q.name}>{q.name}: {q.title}</option>)}
            </select>
          </div>
        </Panel>
        {error && <Failure text={error} />}
        {hint && !error && !result && <Empty>{hint}</Empty>}
        {running && !result && <Waiting what="The statement runs." />}
        {result && (
          <Panel title="Result" remark={<span>{format.plural(result.rows.length, "row")}, {took.toFixed(0)} ms{leads ? "; a row opens its time in the timeline" : ""} {canDraw(result) && <button type="button" class={chart ? "on" : ""} aria-pressed={chart} onClick={() => setChart(!chart)}>chart</button>} <button type="button" onClick={() => saveAs("csv")}>save CSV</button> <button type="button" onClick={() => saveAs("parquet")}>save Parquet</button></span>} copies={{ command: command("sql", text.includes("--") ? text.trim() : text.replace(/\s+/g, " ")), sql: text, markdown: () => toMarkdown(result.columns, result.rows), csv: () => toCsv(result.columns, result.rows) }}>
            {chart && canDraw(result) && <ResultChart table={result} onOpen={leads ? openRow : undefined} />}
            {result.rows.length ? <Table label="result" keepEmpty columns={result.columns} rows={result.rows} height={Math.max(10, Math.floor((window.innerHeight - 430) / 24))} onOpen={leads ? openRow : undefined} /> : <Empty>The statement ran and gave no rows: its conditions match nothing in these files.</Empty>}
          </Panel>
        )}
      </div>
      <aside class="schema">
        <h2>Tables</h2>
        {tables.error && <Failure text={tables.error} />}
        {(tables.value ?? []).map((t) => (
          <details key={t.name}>
            <summary title={t.doc}><code>{t.name}</code></summary>
            <p>{t.doc}</p>
            <ul>
              {t.columns.map((c) => <li key={c.name} title={c.doc}><code>{c.name}</code> <small>{c.type}</small></li>)}
            </ul>
          </details>
        ))}
      </aside>
    </div>
  );
}
