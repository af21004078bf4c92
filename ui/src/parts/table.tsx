// table.tsx: a table of a view: sort by click, filter by typing, rows by keyboard, a bar behind the main number. Only
// visible rows are in the document, so a million rows scroll like ten.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cell, Column, Row } from "../api";
import * as format from "../format";

const ROW_HEIGHT = 24;

export interface TableProps {
  columns: Column[];
  rows: Row[];
  /** Names of the columns to show, in order; undefined: all. */
  shown?: string[];
  titles?: Record<string, string>;
  /** Name of the column with bars. */
  bar?: string;
  /** Column to sort by; "-time_ns": descending. */
  sort?: string;
  onSort?: (sort: string) => void;
  onOpen?: (row: Row) => void;
  /** Number of visible rows; the table scrolls beyond. */
  height?: number;
  label: string;
  isMarked?: (row: Row) => boolean;
  /** The text column that gets the remaining width; undefined: the first one. */
  wide?: string;
  /** An additional column at the end, drawn by the page; Space on a row or a click on the cell calls onOpen. */
  extra?: { title: string; draw: (row: Row) => ComponentChildren; onOpen: (row: Row) => void };
  /** Keep columns without any value, for results of SQL. */
  keepEmpty?: boolean;
}

const isNumber = (column: Column) => column.type === "int" || column.type === "real" || column.type === "number";

function compare(a: Cell | undefined, b: Cell | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
}

export function sortRows(rows: Row[], sort: string): Row[] {
  if (!sort) return rows;
  const down = sort.startsWith("-");
  const name = down ? sort.slice(1) : sort;
  const known = (row: Row) => row[name] !== null && row[name] !== undefined;
  return rows
    .map((row, i) => ({ row, i }))
    .sort((x, y) => {
      if (known(x.row) !== known(y.row)) return known(x.row) ? -1 : 1; // unknown values last, in both directions
      return (down ? compare(y.row[name], x.row[name]) : compare(x.row[name], y.row[name])) || x.i - y.i;
    })
    .map((entry) => entry.row);
}

const isNothing = (value: Cell | undefined) => value === null || value === undefined || value === "";

/** Shortens a text at its beginning: paths and "file:line" differ at their ends. */
function Text(p: { text: string }) {
  const at = /^(.+?)(:\d+(?:[ :].*)?)$/.exec(p.text) ?? /^(.*\/)([^/]+)$/.exec(p.text);
  if (!at || p.text.length < 16 || at[2].length > 48) return <>{p.text}</>;
  return (
    <span class="split">
      <span class="head">{at[1]}</span>
      <span>{at[2]}</span>
    </span>
  );
}

export function Table(p: TableProps) {
  const columns = useMemo(() => {
    const all = (p.shown ?? p.columns.map((c) => c.name)).map((name) => p.columns.find((c) => c.name === name)).filter((c): c is Column => !!c);
    return p.keepEmpty || !p.rows.length ? all : all.filter((c, i) => i === 0 || c.name === p.bar || p.rows.some((row) => !isNothing(row[c.name])));
  }, [p.rows, p.columns, p.shown?.join()]);
  const [ownSort, setOwnSort] = useState(p.sort ?? "");
  const sort = p.onSort ? (p.sort ?? "") : ownSort;
  const rows = useMemo(() => sortRows(p.rows, sort), [p.rows, sort]);
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [current, setCurrent] = useState(-1);
  const visible = Math.min(p.height ?? 30, Math.max(rows.length, 1));
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - 5);
  const last = Math.min(rows.length, first + visible + 12);
  const most = useMemo(() => {
    let value = 0;
    if (p.bar) for (const row of p.rows) value = Math.max(value, Number(row[p.bar]) || 0);
    return value;
  }, [p.rows, p.bar]);

  useEffect(() => setCurrent(-1), [p.rows]);
  useLayoutEffect(() => {
    const view = box.current;
    if (!view || current < 0) return;
    const y = current * ROW_HEIGHT;
    if (y < view.scrollTop) view.scrollTop = y;
    else if (y + 2 * ROW_HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = y + 2 * ROW_HEIGHT - view.clientHeight;
  }, [current]);

  const chooseSort = (column: Column) => {
    const ascending = sort === column.name;
    const next = sort === "-" + column.name ? column.name : ascending ? "" : isNumber(column) ? "-" + column.name : column.name;
    (p.onSort ?? setOwnSort)(next);
  };
  const onKey = (e: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: visible - 1, PageUp: 1 - visible, Home: -rows.length, End: rows.length };
    if (e.key in moves) {
      setCurrent(Math.max(0, Math.min(rows.length - 1, current + moves[e.key])));
      e.preventDefault();
    } else if (e.key === " " && p.extra && rows[current]) {
      p.extra.onOpen(rows[current]);
      e.preventDefault();
    } else if (e.key === "Enter" && p.onOpen && rows[current]) {
      p.onOpen(rows[current]);
      e.preventDefault();
    }
  };
  return (
    <div class="table" ref={box} style={{ maxHeight: (visible + 1) * ROW_HEIGHT + 2 + "px" }} onScroll={(e) => setTop(e.currentTarget.scrollTop)} tabIndex={0} onKeyDown={onKey} role="grid" aria-label={p.label} aria-rowcount={rows.length + 1}>
      <table role="presentation" class={p.wide ? "chosen" : ""}>
        <thead>
          <tr role="row">
            {columns.map((c) => (
              <th key={c.name} role="columnheader" class={isNumber(c) ? "number" : ""} aria-sort={sort === c.name ? "ascending" : sort === "-" + c.name ? "descending" : "none"} title={"sort by " + c.name}>
                <button type="button" tabIndex={-1} onClick={() => chooseSort(c)}>
                  {p.titles?.[c.name] ?? format.title(c.name)}
                  <span class="arrow">{sort === c.name ? " ▲" : sort === "-" + c.name ? " ▼" : ""}</span>
                </button>
              </th>
            ))}
            {p.extra && <th role="columnheader" class="extra">{p.extra.title}</th>}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr style={{ height: first * ROW_HEIGHT + "px" }} />}
          {rows.slice(first, last).map((row, i) => (
            <tr key={first + i} role="row" aria-rowindex={first + i + 2} class={(first + i === current ? "current " : "") + (p.onOpen ? "opens " : "") + (p.isMarked?.(row) ? "marked" : "")} onClick={() => {
              setCurrent(first + i);
              p.onOpen?.(row);
            }}>
              {columns.map((c) => (
                <td key={c.name} role="gridcell" data-column={c.name} class={(isNumber(c) ? "number" : "text") + (isNothing(row[c.name]) || row[c.name] === 0 || row[c.name] === false ? " nil" : "") + (c.name === p.wide ? " wide" : "")} title={isNumber(c) ? format.exact(row[c.name], c) : String(row[c.name] ?? "")}>
                  {c.name === p.bar && most > 0 && <span class="bar" style={{ width: Math.max(0, (100 * (Number(row[c.name]) || 0)) / most) + "%" }} />}
                  <span class="value">{isNumber(c) ? format.cell(row[c.name], c) : <Text text={format.cell(row[c.name], c)} />}</span>
                </td>
              ))}
              {p.extra && <td role="gridcell" class="extra" onClick={(e) => {
                e.stopPropagation();
                setCurrent(first + i);
                p.extra?.onOpen(row);
              }}>{p.extra.draw(row)}</td>}
            </tr>
          ))}
          {last < rows.length && <tr style={{ height: (rows.length - last) * ROW_HEIGHT + "px" }} />}
        </tbody>
      </table>
    </div>
  );
}

/** Rows of a tree as a list, parents first; the column `depth` has the level. */
export function flatten(rows: Row[]): Row[] {
  const out: Row[] = [];
  const stack = [...rows].reverse().map((row) => ({ row, depth: 0 }));
  for (let top = stack.pop(); top; top = stack.pop()) {
    const row: Row = Object.assign({}, top.row);
    row.depth = top.depth;
    out.push(row);
    for (const child of [...(top.row.children ?? [])].reverse()) stack.push({ row: child, depth: top.depth + 1 });
  }
  return out;
}

const csvWord = (text: string) => (/[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);

export function toCsv(columns: Column[], rows: Row[]): string {
  const lines = [columns.map((c) => csvWord(c.name)).join(",")];
  for (const row of rows) lines.push(columns.map((c) => (row[c.name] === null || row[c.name] === undefined ? "" : csvWord(String(row[c.name])))).join(","));
  return lines.join("\n") + "\n";
}

export function toMarkdown(columns: Column[], rows: Row[], most = 50): string {
  const text = (value: string) => value.replace(/\|/g, "\\|").replace(/\n/g, " ");
  const lines = ["| " + columns.map((c) => text(format.title(c.name))).join(" | ") + " |", "|" + columns.map((c) => (isNumber(c) ? "---:|" : "---|")).join("")];
  for (const row of rows.slice(0, most)) lines.push("| " + columns.map((c) => text(format.cell(row[c.name], c))).join(" | ") + " |");
  if (rows.length > most) lines.push("", `… and ${rows.length - most} more rows`);
  return lines.join("\n") + "\n";
}
