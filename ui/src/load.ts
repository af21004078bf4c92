// load.ts: answers of the server as signals: loading, a value, or an error. Answers are kept while the page is open; they
// do not change, because a profile that is open does not; when a recording that grows was read again, all are dropped.
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
const kept = new Map<string, Promise<unknown>>();

export function forget() {
  kept.clear();
}

function fetchKept<T>(path: string, params: Params, text: boolean): Promise<T> {
  const key = withParams(path, params);
  let promise = kept.get(key) as Promise<T> | undefined;
  if (!promise) {
    promise = (text ? getText(path, params) : getJson(path, params)) as Promise<T>;
    kept.set(key, promise);
    promise.catch(() => kept.delete(key));
    if (kept.size > KEPT_MOST) kept.delete(kept.keys().next().value as string);
  }
  return promise;
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
