// format.ts: formats numbers for people: three significant digits, always with a unit. Unknown is "–", never 0.
import type { Cell, Column } from "./api";

const TIMES: [number, string][] = [
  [3600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const SIZES: [number, string][] = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];
const COUNTS: [number, string][] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return size >= 0.005 ? value.toFixed(2) : value.toExponential(1);
}

function scaled(value: number, units: [number, string][], smallest: string): string {
  if (value === 0) return "0" + (smallest === "" ? "" : smallest);
  for (const [factor, unit] of units) if (Math.abs(value) >= factor * 0.9995) return digits(value / factor) + " " + unit;
  return (Number.isInteger(value) ? String(value) : digits(value)) + smallest;
}

export const time = (ns: number) => scaled(ns, TIMES, " ns");
export const bytes = (n: number) => scaled(n, SIZES, " B");
export const count = (n: number) => (Number.isInteger(n) && Math.abs(n) < 10000 ? String(n) : scaled(n, COUNTS, ""));
export const percent = (n: number) => (n !== 0 && Math.abs(n) < 0.05 ? "< 0.1 %" : n.toFixed(1) + " %");

export function cell(value: Cell | undefined, column: Pick<Column, "type" | "unit">): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  switch (column.unit) {
    case "ns":
      return time(value);
    case "us":
      return time(value * 1000);
    case "bytes":
      return bytes(value);
    case "count":
      return count(value);
    case "percent":
      return percent(value);
    default:
      return Number.isInteger(value) ? String(value) : digits(value);
  }
}

/** The exact value of a cell, for a tooltip. */
export function exact(value: Cell | undefined, column: Pick<Column, "type" | "unit">): string {
  if (typeof value !== "number") return value === null || value === undefined ? "not known" : String(value);
  return String(value) + (column.unit ? " " + column.unit : "");
}

/** The title of a column: "time_ns" becomes "time", because the value has its unit. */
export function title(name: string): string {
  return name.replace(/_(ns|us|micros|bytes|ps)$/, "").replace(/_/g, " ");
}

export const plural = (n: number, word: string) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
export const baseName = (path: string) => path.replace(/\/+$/, "").split("/").pop() || path;

/** Quotes a word for a shell. */
export const shellWord = (word: string) => (/^[\w./:=+,@%-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");
