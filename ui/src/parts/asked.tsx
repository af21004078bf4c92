// asked.tsx: the answer of a named query as a panel with a table; `opwatch ask NAME` prints the same.
import { useEffect, useState } from "preact/hooks";
import { post, type Table as TableData } from "../api";
import { shellWord } from "../format";
import { withUnits } from "../pages/sql";
import { baseFiles, Empty, Failure, Panel, Waiting, files } from "./panel";
import { Table, toCsv, toMarkdown } from "./table";
import { matcher } from "./view";

export function Asked(p: { name: string; title: string; height: number; params?: string }) {
  const [table, setTable] = useState<TableData | null>(null);
  const [error, setError] = useState("");
  const [filter, setFilter] = useState("");
  useEffect(() => {
    post("/api/ask", p.name + "\n" + (p.params ?? ""))
      .then((response) => response.json())
      .then((answer: TableData) => setTable(withUnits(answer)), (e: Error) => setError(e.message));
  }, [p.name, p.params]);
  const names = baseFiles.value.length ? ["--run", "base=" + baseFiles.value.join(","), "--run", "new=" + files.value.join(",")] : files.value;
  const rows = (table?.rows ?? []).filter(matcher(filter));
  return (
    <Panel title={p.title} remark={table && table.rows.length > p.height ? <span><input type="search" class="filter" placeholder="filter (regex)" aria-label={"filter " + p.title} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></span> : undefined} copies={{ command: ["opwatch", "ask", p.name, ...names].map(shellWord).join(" "), markdown: () => toMarkdown(table?.columns ?? [], rows), csv: () => toCsv(table?.columns ?? [], rows) }}>
      {error && <Failure text={error} />}
      {!table && !error && <Waiting />}
      {table && (table.rows.length ? <Table label={p.title} columns={table.columns} rows={rows} height={p.height} /> : <Empty>nothing to compare here</Empty>)}
    </Panel>
  );
}
