// asked.ts: requests the answer of a named query; `opwatch ask NAME` prints the same. Answers are cached like those of
// views.
import { files } from "./panel";
import { shellWord } from "../format";
import { usePosted, type Loaded } from "../load";
import { inReport, type Table as TableData } from "../api";

/** A null name requests nothing; a report has no queries. */
export function useAsked(name: string | null, params: Record<string, string | number> = {}): Loaded<TableData> {
  return usePosted<TableData>(name === null || inReport() ? null : "/api/ask", [name ?? "", ...Object.entries(params).map(([key, value]) => `${key}=${value}`)].join("\n"));
}

export const askCommand = (name: string, params: Record<string, string | number> = {}, of = files.value) => ["opwatch", "ask", name, ...of, ...Object.entries(params).flatMap(([key, value]) => ["--" + key, String(value)])].map(shellWord).join(" ");
