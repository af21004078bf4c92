// view.tsx: a view of the library as a panel with a table: requests it, filters, shows, and names its command.
import { useMemo, useState } from "preact/hooks";
import type { Params, Row, Table as TableData } from "../api";
import { ranged, useAnswer } from "../load";
import * as format from "../format";
import { Empty, Failure, Panel, Waiting, command } from "./panel";
import { Table, flatten, toCsv, toMarkdown, type TableProps } from "./table";

/** Converts options of a request to options of the command line. */
export function optionWords(params: Params): string[] {
  const words: string[] = [];
  for (const [key, value] of Object.entries(params)) {
    if (key === "name" || value === undefined || value === null || value === "" || key === "time_from" || key === "time_to") continue;
    words.push("--" + key.replace(/_/g, "-"), String(value).split("\n").join(","));
  }
  if (params.time_from !== undefined || params.time_to !== undefined) words.push("--time-range", `${params.time_from ?? 0}ns:${params.time_to ?? ""}${params.time_to === undefined ? "" : "ns"}`);
  return words;
}

export interface ViewProps {
  view: string;
  params?: Params;
  title?: string;
  shown?: string[];
  titles?: Record<string, string>;
  bar?: string;
  wide?: string;
  sort?: string;
  onSort?: (sort: string) => void;
  onOpen?: (row: Row) => void;
  height?: number;
  most?: number;
  empty: string;
  filter?: string;
  onFilter?: (text: string) => void;
  tree?: boolean;
  extra?: TableProps["extra"];
  isMarked?: (row: Row) => boolean;
  keep?: (row: Row) => boolean;
  /** Must change when `keep` keeps other rows. */
  keepKey?: string;
}

export function matcher(filter: string): (row: Row) => boolean {
  if (!filter) return () => true;
  let test: (text: string) => boolean;
  try {
    const regex = new RegExp(filter, "i");
    test = (text) => regex.test(text);
  } catch {
    const lower = filter.toLowerCase();
    test = (text) => text.toLowerCase().includes(lower);
  }
  return (row) => Object.values(row).some((value) => typeof value === "string" && test(value));
}

export function View(p: ViewProps) {
  const params = { name: p.view, ...p.params };
  const answer = useAnswer<TableData>(p.view === "advise" ? "/api/advise" : "/api/view", p.view === "advise" ? {} : params);
  const [ownFilter, setOwnFilter] = useState("");
  const filter = p.onFilter ? (p.filter ?? "") : ownFilter;
  const all = useMemo(() => {
    const rows = answer.value ? (p.tree ? flatten(answer.value.rows) : answer.value.rows) : [];
    return p.keep ? rows.filter(p.keep) : rows;
  }, [answer.value, p.keepKey]);
  const rows = useMemo(() => (p.most ? all.filter(matcher(filter)).slice(0, p.most) : all.filter(matcher(filter))), [all, filter, p.most]);
  const sqlName = p.view === "advise" ? "finding" : p.view + "_view";

  if (answer.error) return <Panel title={p.title}><Failure text={answer.error} /></Panel>;
  if (!answer.value) return <Panel title={p.title}><Waiting /></Panel>;
  const shown = answer.value.columns.filter((c) => !p.shown || p.shown.includes(c.name));
  return (
    <Panel
      title={p.title}
      remark={all.length > (p.height ?? 30) || p.onFilter ? (
        <span>
          {rows.length === all.length ? format.plural(all.length, "row") : `${rows.length} of ${format.plural(all.length, "row")}`}
          <input class="filter" type="search" placeholder="filter (regex)" aria-label={"filter " + (p.title ?? p.view)} value={filter} onInput={(e) => (p.onFilter ?? setOwnFilter)(e.currentTarget.value)} />
        </span>
      ) : undefined}
      copies={{
        command: command(p.view, ...optionWords(ranged(params))),
        sql: `SELECT * FROM ${sqlName}`,
        markdown: () => toMarkdown(shown, rows),
        csv: () => toCsv(shown, rows),
      }}
    >
      {all.length ? (
        <Table label={p.title ?? p.view} columns={answer.value.columns} rows={rows} shown={p.shown} titles={p.titles} bar={p.bar} wide={p.wide} sort={p.sort} onSort={p.onSort} onOpen={p.onOpen} height={p.height} extra={p.extra} isMarked={p.isMarked} />
      ) : (
        <Empty>{answer.value.footer ?? p.empty}</Empty>
      )}
    </Panel>
  );
}
