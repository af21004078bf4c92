// load.ts: provides answers of the server as signals: loading, a value, or an error. Answers are cached while the page
// is open, up to a limit in bytes, because an open profile does not change; when a growing recording was read again,
// all are dropped.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { param } from "./address";
import { getJson, getText, inReport, post, withParams, type Params } from "./api";
import * as format from "./format";

export interface Loaded<T> {
  value?: T;
  error?: string;
}

/** Views that accept a range of time, with these files. */
export const timedViews = signal<string[]>([]);
/** These views always show the whole time: on them the user chooses a range, or they give facts for the whole page. */
const WHOLE = ["steps", "metrics", "heaps", "memory_time", "memory_at", "memory_steps", "verdict"];

/** The range of time in the address, [from, to], on the clock of views. */
export function rangeOf(): [number, number] | null {
  const match = /^(-?\d+)-(-?\d+)$/.exec(param("range"));
  return match && Number(match[1]) < Number(match[2]) ? [Number(match[1]), Number(match[2])] : null;
}

export const partOf = (range: [number, number]) => `${format.time(range[0])} … ${format.time(range[1])}`;

/** Adds the range of time that is shown to the parameters of a view. */
export function ranged(params: Params): Params {
  const range = rangeOf();
  const name = String(params.name ?? "");
  if (!range || inReport() || params.base || "step" in params || "time_from" in params || WHOLE.includes(name) || !timedViews.value.includes(name)) return params;
  return { ...params, time_from: range[0], time_to: range[1] };
}

/** Changes when the server has read the files again. */
export const epoch = signal(0);
const KEPT_MOST = 200;
const KEPT_BYTES = 6 << 20; // bytes of text; as objects, answers take several times as much
interface Kept {
  promise: Promise<unknown>;
  bytes: number;
}
const kept = new Map<string, Kept>(); // in order of use

export function forget() {
  kept.clear();
}

/** Drops the least recently used answers, but never the newest, because the page shows it. */
function bound() {
  let bytes = 0;
  for (const entry of kept.values()) bytes += entry.bytes;
  for (const [key, entry] of kept) {
    if (kept.size <= 1 || (bytes <= KEPT_BYTES && kept.size <= KEPT_MOST)) break;
    kept.delete(key);
    bytes -= entry.bytes;
  }
}

function fetchKept<T>(key: string, ask: (measure: (size: number) => void) => Promise<unknown>): Promise<T> {
  const old = kept.get(key);
  if (old) {
    kept.delete(key);
    kept.set(key, old);
    return old.promise as Promise<T>;
  }
  const entry: Kept = { promise: Promise.resolve(), bytes: 0 };
  const measure = (size: number) => {
    entry.bytes = size;
    bound();
  };
  entry.promise = ask(measure);
  kept.set(key, entry);
  entry.promise.catch(() => kept.get(key) === entry && kept.delete(key));
  return entry.promise as Promise<T>;
}

/** Saves a response as a file in the browser's downloads. */
export async function download(response: Response, name: string) {
  save(await response.blob(), name.replace(/[^\w.-]+/g, "_") + ".opw");
}

export function save(content: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Requests an answer whenever the path or a parameter changes; a null path requests nothing. */
export function useAnswer<T>(path: string | null, given: Params = {}, text = false): Loaded<T> {
  const params = path === "/api/view" ? ranged(given) : given;
  return useKept<T>(path === null ? null : withParams(path, params), (measure) => (text ? getText(path ?? "", params, measure) : getJson(path ?? "", params, undefined, measure)));
}

/** Like useAnswer, for a request with a body. */
export const usePosted = <T>(path: string | null, body: string): Loaded<T> =>
  useKept<T>(path === null ? null : path + "\n" + body, async (measure) => {
    const answer = await (await post(path ?? "", body)).text();
    measure(answer.length);
    return JSON.parse(answer) as unknown;
  });

function useKept<T>(key: string | null, ask: (measure: (size: number) => void) => Promise<unknown>): Loaded<T> {
  const [state, setState] = useState<Loaded<T> & { key?: string | null }>({});
  useEffect(() => {
    if (key === null) return;
    let dropped = false;
    fetchKept<T>(key, ask).then(
      (value) => !dropped && setState({ value, key }),
      (e: Error) => !dropped && setState({ error: e.message, key }),
    );
    return () => {
      dropped = true;
    };
  }, [key]);
  return state.key === key ? state : {};
}
