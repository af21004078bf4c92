// code.tsx: the page Code: source files with the cost of each line beside it. A file is shown when it lies below the folder
// that opwatch was started in; otherwise the lines that the profile knows are.
import { useMemo } from "preact/hooks";
import { change, go, param } from "../address";
import type { Row, Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";

export function CodePage() {
  const lines = useAnswer<TableData>("/api/view", { name: "lines" });
  const rows = lines.value?.rows ?? [];
  const cost = lines.value?.columns.some((c) => c.name === "self") && !rows.some((row) => Number(row.time_ns) > 0) ? "self" : "time_ns";
  const column = lines.value?.columns.find((c) => c.name === cost) ?? { name: cost, type: "int", unit: "ns" };
  const files = useMemo(() => {
    const sums = new Map<string, Row>();
    for (const row of rows) {
      const file = String(row.file ?? "");
      if (!file) continue;
      const sum = sums.get(file) ?? ({ file, cost: 0, lines: 0 } as Row);
      sum.cost = Number(sum.cost) + (Number(row[cost]) || 0);
      sum.lines = Number(sum.lines) + 1;
      sums.set(file, sum);
    }
    return [...sums.values()].sort((a, b) => Number(b.cost) - Number(a.cost));
  }, [lines.value]);
  if (lines.error) return <Failure text={lines.error} />;
  if (!lines.value) return <Waiting />;
  if (!files.length && !param("file"))
    return (
      <div class="page">
        <Panel title="Code"><Empty page="code">The files name no lines of source code. A recording with Python stacks, a sampled profile or a TensorFlow profile with code traces does.</Empty></Panel>
      </div>
    );
  const file = fileNamed(param("file"), files) ?? String(files[0]?.file ?? "");
  const columns = [{ name: "file", type: "text", unit: null }, { name: "cost", type: "int", unit: column.unit }, { name: "lines", type: "int", unit: "count" }];
  return (
    <div class="page code-page">
      <div class="files">
        <Panel title="Files" copies={{ command: command("lines"), sql: "SELECT * FROM lines_view", markdown: () => toMarkdown(columns, files), csv: () => toCsv(columns, files) }}>
          <Table label="source files" columns={columns} rows={files} bar="cost" titles={{ cost: cost === "self" ? "own cost" : "time" }} height={20} onOpen={(row) => change({ file: String(row.file), line: "" })} isMarked={(row) => row.file === file} />
        </Panel>
      </div>
      <Source file={file} rows={rows.filter((row) => row.file === file)} cost={cost} unit={column.unit} />
    </div>
  );
}

/** Findings name a file shortly ("train.py"): the one with that end, of several the costliest. */
function fileNamed(name: string, files: Row[]): string | null {
  if (!name || files.some((row) => row.file === name)) return name || null;
  const found = files.find((row) => String(row.file).endsWith("/" + name.replace(/^(…|\.\.\.)?\/?/, "")));
  return found ? String(found.file) : name;
}

interface Line {
  number: number;
  text: string;
  row?: Row;
}

function Source(p: { file: string; rows: Row[]; cost: string; unit: string | null }) {
  const source = useAnswer<{ path: string; text: string; error?: string }>(p.file ? "/api/source" : null, { file: p.file });
  const missing = source.error ?? source.value?.error;
  const wanted = Number(param("line"));
  const most = Math.max(1, ...p.rows.map((row) => Number(row[p.cost]) || 0));
  const lines: Line[] = useMemo(() => {
    const byLine = new Map<number, Row>();
    for (const row of p.rows) {
      const old = byLine.get(Number(row.line));
      if (!old || Number(row[p.cost]) > Number(old[p.cost])) byLine.set(Number(row.line), row);
    }
    if (source.value && !missing) return source.value.text.split("\n").map((text, i) => ({ number: i + 1, text, row: byLine.get(i + 1) }));
    return [...byLine].sort(([a], [b]) => a - b).map(([number, row]) => ({ number, text: String(row.text ?? ""), row }));
  }, [source.value, p.rows]);
  return (
    <Panel title={format.baseName(p.file)} class="source" remark={source.value?.path ?? p.file} copies={{ command: command("lines") }}>
      {missing && <p class="fact">Only the lines that the profile names are shown: {missing}.</p>}
      {!source.value && !missing && <Waiting />}
      <div class="line head" aria-hidden="true">
        <span class="cost">{p.cost === "self" ? "own cost" : "time"}</span>
        <span class="number">line</span>
        <span>{missing ? "" : "source"}</span>
        <span>{p.rows.some((row) => row.top_type) ? "main operation" : ""}</span>
      </div>
      <div class="lines" role="table" aria-label={"lines of " + p.file} tabIndex={0}>
        {lines.map((line) => {
          const cost = line.row ? Number(line.row[p.cost]) || 0 : 0;
          return (
            <div key={line.number} role="row" class={"line" + (line.number === wanted ? " wanted" : "") + (line.row ? " costs" : "")} ref={(e) => {
              if (e && line.number === wanted) e.scrollIntoView({ block: "center" });
            }}>
              <span role="cell" class="cost" title={line.row ? format.exact(cost, { type: "int", unit: p.unit }) : undefined}>
                {line.row && <span class="bar" style={{ width: (100 * cost) / most + "%" }} />}
                <span class="value">{line.row ? format.cell(cost, { type: "int", unit: p.unit }) : ""}</span>
              </span>
              <span role="cell" class="number">{line.number}</span>
              <code role="cell">{line.text}</code>
              {line.row?.top_type ? (
                <span role="cell"><button type="button" class="plain" title="show in the timeline" onClick={() => go({ page: "timeline", params: { q: String(line.row?.top_type) } })}>{String(line.row.top_type)}</button></span>
              ) : null}
            </div>
          );
        })}
      </div>
    </Panel>
  );
}
