// code.tsx: the page Code: source files with three costs beside each line: time of the operations that the line makes,
// samples in it, its memory at the peak. A file is shown if it is below the folder in which opwatch was started;
// otherwise only the lines that the profile knows are shown. A line shows its callers and links to the timeline.
import { useMemo } from "preact/hooks";
import { change, go, param } from "../address";
import { inReport, type Column, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import * as flame from "../parts/flame";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";

/** One kind of cost of a line. */
interface Cost {
  key: "time" | "samples" | "own" | "memory";
  title: string;
  column: Pick<Column, "type" | "unit">;
  hint: string;
}
/** A line of a source file that has a cost. */
interface Costly {
  file: string;
  line: number;
  text: string;
  function: string;
  type: string;
  costs: Partial<Record<Cost["key"], number>>;
}

const lineKey = (file: string, line: number) => file + "\n" + line;

/** Whether a short name, such as "train.py" in "train.py:34:minimize", means the file at this path. */
const isFile = (path: string, name: string) => path === name || path.endsWith("/" + name.replace(/^(…|\.\.\.)?\/?/, ""));

/** Collects all costs by line, from up to three views. */
function useLines() {
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const peak = useAnswer<TableData>("/api/view", { name: "memory_peak" });
  const metric = metrics.value?.rows.find((row) => row.is_default === true) ?? metrics.value?.rows[0];
  const onlySamples = lines.value?.columns.some((c) => c.name === "self") === true;
  const sampled = useAnswer<TableData>(metric && !onlySamples && !inReport() ? "/api/view" : null, { name: "lines", metric: String(metric?.name ?? "") });
  const samples = onlySamples ? lines.value : sampled.value;
  return useMemo(() => {
    const all = new Map<string, Costly>();
    const at = (file: string, line: number) => {
      const key = lineKey(file, line);
      const old = all.get(key) ?? { file, line, text: "", function: "", type: "", costs: {} };
      all.set(key, old);
      return old;
    };
    const add = (one: Costly, key: Cost["key"], value: unknown) => (one.costs[key] = (one.costs[key] ?? 0) + (Number(value) || 0));
    if (!onlySamples) for (const row of lines.value?.rows ?? []) {
      if (!row.file || !(Number(row.line) > 0)) continue;
      const one = at(String(row.file), Number(row.line));
      one.text ||= String(row.text ?? "");
      one.type ||= String(row.top_type ?? "");
      one.function ||= String(row.function ?? "");
      add(one, "time", row.time_ns);
    }
    for (const row of samples?.rows ?? []) {
      if (!row.file || !(Number(row.line) > 0)) continue;
      const one = at(String(row.file), Number(row.line));
      one.function ||= String(row.function ?? "");
      add(one, "samples", row.total);
      add(one, "own", row.self);
    }
    const heap = largestHeap(peak.value);
    const known = [...all.values()];
    for (const row of peak.value?.rows ?? []) {
      const name = row.grouped_by === "line" && heapOf(row) === heap && /^(.*?):(\d+)(?::|$)/.exec(String(row.name));
      if (!name) continue;
      const found = known.find((one) => one.line === Number(name[2]) && isFile(one.file, name[1]));
      add(found ?? at(known.find((one) => isFile(one.file, name[1]))?.file ?? name[1], Number(name[2])), "memory", row.bytes);
    }
    const rows = [...all.values()];
    const unit = samples?.columns.find((c) => c.name === "self")?.unit ?? "count";
    const costs: Cost[] = [
      { key: "time" as const, title: "time", column: { type: "int", unit: "ns" }, hint: "time of the operations that the line makes" },
      { key: "samples" as const, title: "sampled", column: { type: "int", unit }, hint: `${String(metric?.name ?? "samples")} in the line and in what it calls` },
      { key: "own" as const, title: "own", column: { type: "int", unit }, hint: `${String(metric?.name ?? "samples")} in the line itself` },
      { key: "memory" as const, title: "memory", column: { type: "int", unit: "bytes" }, hint: "in use at the peak, of the largest heap" },
    ].filter((cost) => rows.some((row) => (row.costs[cost.key] ?? 0) > 0));
    // Costs of lines that include callees overlap, so files are sorted by costs that do not.
    return { rows, costs, error: lines.error, ready: !!lines.value && !!metrics.value, sampled: (metrics.value?.rows.length ?? 0) > 0 };
  }, [lines.value, lines.error, metrics.value, samples, peak.value]);
}

const heapOf = (row: Row) => [row.device, row.allocator, row.rank].map((v) => v ?? "").join("\t");
function largestHeap(peak: TableData | undefined): string {
  const sums = new Map<string, number>();
  for (const row of peak?.rows ?? []) if (row.grouped_by === "line") sums.set(heapOf(row), (sums.get(heapOf(row)) ?? 0) + Number(row.bytes));
  return [...sums].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "";
}

export function CodePage() {
  const code = useLines();
  const first = code.costs.find((cost) => cost.key !== "samples");
  const summed = code.costs.filter((cost) => cost.key !== "samples");
  const files = useMemo(() => {
    const sums = new Map<string, Row>();
    for (const one of code.rows) {
      const sum = sums.get(one.file) ?? ({ file: one.file, lines: 0, ...Object.fromEntries(summed.map((cost) => [cost.key, 0])) } as Row);
      for (const cost of summed) sum[cost.key] = Number(sum[cost.key]) + (one.costs[cost.key] ?? 0);
      sum.lines = Number(sum.lines) + 1;
      sums.set(one.file, sum);
    }
    return [...sums.values()].sort((a, b) => (first ? Number(b[first.key]) - Number(a[first.key]) : 0));
  }, [code]);
  if (code.error) return <Failure text={code.error} />;
  if (!code.ready) return <Waiting />;
  if (!files.length && !param("file"))
    return (
      <div class="page">
        <Panel title="Code" copies={{ command: command("lines") }}>
          <Empty page="code">{code.sampled ? <>The samples name functions, but no lines of source code. <a href="#/flame?view=samples">Flame</a> shows who calls the costly ones. Programs built with debugging information (-g) have lines.</> : "The files name no lines of source code. A recording with Python stacks (with_stack=True), a sampled profile of programs built with -g, or a TensorFlow profile with code traces does."}</Empty>
        </Panel>
      </div>
    );
  const file = fileNamed(param("file"), files) ?? String(files[0]?.file ?? "");
  const columns = [{ name: "file", type: "text", unit: null }, ...summed.map((cost) => ({ name: cost.key, ...cost.column })), { name: "lines", type: "int", unit: "count" }];
  const titles = Object.fromEntries(code.costs.map((cost) => [cost.key, cost.title]));
  const here = code.rows.filter((row) => row.file === file);
  const line = Number(param("line"));
  return (
    <div class="page code-page">
      <div class="files">
        <Panel title="Files" copies={{ command: command("lines"), sql: "SELECT * FROM lines_view", markdown: () => toMarkdown(columns, files), csv: () => toCsv(columns, files) }}>
          <Table label="source files" columns={columns} rows={files} bar={first?.key} shown={["file", ...summed.map((cost) => cost.key), ...(summed.length < 3 ? ["lines"] : [])]} titles={titles} height={14} onOpen={(row) => change({ file: String(row.file), line: "" })} isMarked={(row) => row.file === file} />
        </Panel>
        {line > 0 && <Callers file={file} line={line} row={here.find((one) => one.line === line)} />}
      </div>
      <Source file={file} rows={here} costs={code.costs} />
    </div>
  );
}

/** Findings name a file by the end of its path ("train.py"): finds the file, the costliest if there are several. */
function fileNamed(name: string, files: Row[]): string | null {
  if (!name || files.some((row) => row.file === name)) return name || null;
  const found = files.find((row) => isFile(String(row.file), name));
  return found ? String(found.file) : name;
}

/** Shows the callers of a line, from the tree of calls, and a link to the timeline. */
function Callers(p: { file: string; line: number; row?: Costly }) {
  const byTime = !p.row || p.row.costs.time !== undefined;
  const metrics = useAnswer<TableData>("/api/view", { name: "metrics" });
  const metric = String((metrics.value?.rows.find((row) => row.is_default === true) ?? metrics.value?.rows[0])?.name ?? "");
  const params = byTime ? { name: "code", max_depth: 100, order_by: "micros", select: "micros" } : { name: "code", max_depth: 100, metric, style: "lines" };
  const answer = useAnswer<TableData>(byTime || metric ? "/api/view" : null, params);
  const place = `${format.baseName(p.file)}:${p.line}`;
  const column = answer.value?.columns.find((c) => c.name === "total_micros" || c.name === "total");
  const callers = useMemo(() => {
    if (!answer.value || !column) return [];
    const root = flame.fromRows(answer.value.rows, column.name);
    const sums = new Map<string, number>();
    const stack = [root];
    for (let node = stack.pop(); node; node = stack.pop()) {
      stack.push(...node.children);
      if (!isLine(node.name, p.file, p.line) || !node.parent || node.parent === root) continue;
      sums.set(node.parent.name, (sums.get(node.parent.name) ?? 0) + node.total);
    }
    return [...sums].sort(([, a], [, b]) => b - a).slice(0, 12);
  }, [answer.value, p.file, p.line]);
  return (
    <Panel title={place} copies={{ command: command("code", "--max-depth", "100") }}>
      {!inReport() && <p><a class="button" href={"#/timeline?" + new URLSearchParams({ code: `${p.file}:${p.line}` }).toString()}>show in the timeline</a></p>}
      <h3>Called from</h3>
      {!answer.value ? answer.error ? <Failure text={answer.error} /> : <Waiting /> : callers.length ? (
        <ul class="links">
          {callers.map(([name, total]) => {
            const at = /^(.*?):(\d+)(?::(.*))?$/.exec(name);
            return (
              <li key={name}>
                {at && Number(at[2]) > 0 ? <a href={"#/code?" + new URLSearchParams({ file: at[1], line: at[2] }).toString()}>{format.baseName(at[1])}:{at[2]}</a> : null} {at ? at[3] : name} <small>{format.cell(total, column ?? { type: "int", unit: null })}</small>
              </li>
            );
          })}
        </ul>
      ) : <p class="fact">Nothing above it is known: it is the outermost line of its stacks.</p>}
    </Panel>
  );
}

/** Whether a node of the tree of calls, "train.py:42:main", is this line. */
function isLine(name: string, file: string, line: number): boolean {
  const at = /^(.*?):(\d+)(?::|$)/.exec(name);
  return !!at && Number(at[2]) === line && isFile(file, at[1]);
}

function Source(p: { file: string; rows: Costly[]; costs: Cost[] }) {
  const source = useAnswer<{ path: string; text: string; error?: string }>(p.file && !inReport() ? "/api/source" : null, { file: p.file });
  const missing = inReport() ? "a report holds no source files" : (source.error ?? source.value?.error);
  const wanted = Number(param("line"));
  const most = Object.fromEntries(p.costs.map((cost) => [cost.key, Math.max(1, ...p.rows.map((row) => row.costs[cost.key] ?? 0))]));
  const lines = useMemo(() => {
    const byLine = new Map(p.rows.map((row) => [row.line, row]));
    if (source.value && !missing) return source.value.text.split("\n").map((text, i) => ({ number: i + 1, text, row: byLine.get(i + 1) }));
    return [...byLine].sort(([a], [b]) => a - b).map(([number, row]) => ({ number, text: row.text, row: row as Costly | undefined }));
  }, [source.value, missing, p.rows]);
  const hasTypes = p.rows.some((row) => row.type);
  const grid = { gridTemplateColumns: `${p.costs.map(() => "84px").join(" ")} 56px minmax(0, max-content) minmax(max-content, 1fr)` };
  return (
    <Panel title={format.baseName(p.file)} class="source" remark={source.value?.path ?? p.file} copies={{ command: command("lines") }}>
      {source.value?.path && !missing && <p class="fact"><a href={`vscode://file${encodeURI(source.value.path)}:${wanted || 1}`} title="for editors that open addresses of vscode://">open in the editor</a> · <code>$EDITOR +{wanted || 1} {format.shellWord(source.value.path)}</code></p>}
      {missing && <p class="fact">Only the lines that the profile names are shown: {missing}.</p>}
      {!source.value && !missing && <Waiting />}
      <div class="line head" aria-hidden="true" style={grid}>
        {p.costs.map((cost) => <span key={cost.key} class="cost" title={cost.hint}>{cost.title}</span>)}
        <span class="number">line</span>
        <span>{missing ? "function" : "source"}{hasTypes ? ", main operation" : ""}</span>
        <span />
      </div>
      <div class="lines" role="table" aria-label={"lines of " + p.file} tabIndex={0}>
        {lines.map((line) => (
          <div key={line.number} role="row" style={grid} class={"line" + (line.number === wanted ? " wanted" : "") + (line.row ? " costs" : "")} ref={(e) => {
            if (e && line.number === wanted) e.scrollIntoView({ block: "center" });
          }}>
            {p.costs.map((cost) => {
              const value = line.row?.costs[cost.key];
              return (
                <span key={cost.key} role="cell" data-cost={cost.key} class={"cost " + cost.key} title={value !== undefined ? format.exact(value, cost.column) : undefined}>
                  {value !== undefined && <span class="bar" style={{ width: (100 * value) / most[cost.key] + "%" }} />}
                  <span class="value">{value !== undefined ? format.cell(value, cost.column) : ""}</span>
                </span>
              );
            })}
            <span role="cell" class="number">{line.row ? <button type="button" class="plain" title="who calls it, and where it is in the timeline" onClick={() => change({ file: p.file, line: String(line.number) })}>{line.number}</button> : line.number}</span>
            <code role="cell">{line.text || (missing ? line.row?.function : "") || " "}</code>
            {line.row?.type ? (
              <span role="cell"><button type="button" class="plain" title="show in the timeline" onClick={() => go({ page: "timeline", params: { q: String(line.row?.type) } })}>{line.row.type}</button></span>
            ) : <span role="cell" />}
          </div>
        ))}
      </div>
    </Panel>
  );
}
