// load.ts: answers of the server as signals: loading, a value, or an error. Answers are kept while the page is open, up to a
// bound in bytes; they do not change, because a profile that is open does not; when a recording that grows was read again, all are dropped.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { getJson, getText, withParams, type Params } from "./api";

export interface Loaded<T> {
  value?: T;
  error?: string;
}

/** Changes when the server has read the files again. */
export const epoch = signal(0);
const KEPT_MOST = 200;
const KEPT_BYTES = 6 << 20; // of text; as objects it is several times as much
interface Kept {
  promise: Promise<unknown>;
  bytes: number;
}
const kept = new Map<string, Kept>(); // in order of use

export function forget() {
  kept.clear();
}

/** Drops what was used least recently, but never the newest answer: the page shows it. */
function bound() {
  let bytes = 0;
  for (const entry of kept.values()) bytes += entry.bytes;
  for (const [key, entry] of kept) {
    if (kept.size <= 1 || (bytes <= KEPT_BYTES && kept.size <= KEPT_MOST)) break;
    kept.delete(key);
    bytes -= entry.bytes;
  }
}

function fetchKept<T>(path: string, params: Params, text: boolean): Promise<T> {
  const key = withParams(path, params);
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
  entry.promise = text ? getText(path, params, measure) : getJson(path, params, undefined, measure);
  kept.set(key, entry);
  entry.promise.catch(() => kept.get(key) === entry && kept.delete(key));
  return entry.promise as Promise<T>;
}

/** A recording as a file of the browser's downloads. */
export async function download(response: Response, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name.replace(/[^\w.-]+/g, "_") + ".opw";
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Asks when the path or a parameter changes; null asks nothing. */
export function useAnswer<T>(path: string | null, params: Params = {}, text = false): Loaded<T> {
  const key = path === null ? null : withParams(path, params);
  const [state, setState] = useState<Loaded<T> & { key?: string | null }>({});

  useEffect(() => {
    if (path === null) return;
    let dropped = false;
    fetchKept<T>(path, params, text).then(
      (value) => !dropped && setState({ value, key }),
      (e: Error) => !dropped && setState({ error: e.message, key }),
    );
    return () => {
      dropped = true;
    };
  }, [key]);
  return state.key === key ? state : {};
}
