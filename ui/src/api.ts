// api.ts: sends requests to the server of opwatch. The token comes in the fragment of the first address (#t=…), is kept
// in the session storage of this tab and sent as a header. It never stays in the address bar.

const TOKEN_KEY = "opwatch-token";

/** An embedded report contains its answers and has no server. */
declare global {
  interface Window {
    opwatchReport?: Record<string, unknown>;
  }
}
export const inReport = () => window.opwatchReport !== undefined;

/** Removes the token from the address and stores it; the rest of the fragment stays. */
export function takeToken(): void {
  const match = /^#t=([0-9a-f]+)(.*)$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(TOKEN_KEY, match[1]);
  history.replaceState(null, "", location.pathname + (match[2] ? "#" + match[2].replace(/^#/, "") : ""));
}

export const token = () => sessionStorage.getItem(TOKEN_KEY) ?? "";

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { "X-Opwatch-Token": token() }, cache: "no-store" });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new ApiError(0, "opwatch does not answer: was it ended? Start it again and open the new address.");
  }
  if (response.ok) return response;
  let text = response.statusText;
  try {
    text = (await response.json()).error ?? text;
  } catch {
    /* the body is not JSON: the status is enough */
  }
  throw new ApiError(response.status, text);
}

const NOT_HELD = "this report does not hold it: it would not fit (--size). The command below a panel, or opwatch ui, shows it.";

export type Params = Record<string, string | number | undefined | null>;

export function withParams(path: string, params: Params): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== null && value !== "") query.set(key, String(value));
  const text = query.toString();
  return text ? path + "?" + text : path;
}

/** Requests JSON; `measure` receives the length of the answer's text. */
export async function getJson<T>(path: string, params: Params = {}, signal?: AbortSignal, measure?: (bytes: number) => void): Promise<T> {
  const key = withParams(path, params);
  if (window.opwatchReport) {
    if (key in window.opwatchReport) return window.opwatchReport[key] as T;
    throw new ApiError(404, NOT_HELD);
  }
  const response = await request(key, { signal });
  if (!measure) return response.json() as Promise<T>;
  const text = await response.text();
  measure(text.length);
  return JSON.parse(text) as T;
}

export async function getText(path: string, params: Params = {}, measure?: (bytes: number) => void): Promise<string> {
  const key = withParams(path, params);
  if (window.opwatchReport) {
    if (key in window.opwatchReport) return window.opwatchReport[key] as string;
    throw new ApiError(404, NOT_HELD);
  }
  const text = await (await request(key)).text();
  measure?.(text.length);
  return text;
}

export async function post(path: string, body: string, signal?: AbortSignal): Promise<Response> {
  if (inReport()) throw new ApiError(404, NOT_HELD);
  return request(path, { method: "POST", body, signal });
}

/** A column and a table as `opwatch VIEW --json` prints them. */
export interface Column {
  name: string;
  type: string;
  unit: string | null;
}
export type Cell = string | number | boolean | null;
export type Row = { [column: string]: Cell } & { children?: Row[] };
export interface Table {
  view: string;
  columns: Column[];
  rows: Row[];
  footer: string | null;
  [key: string]: unknown;
}

export interface State {
  state: "loading" | "ready" | "failed" | "jobs";
  version: string;
  files: string[];
  base?: string[];
  file: string;
  done: number;
  total: number;
  elapsed_ns: number;
  error?: string;
  damaged?: boolean;
  redacted?: boolean;
  /** Pages without data, as far as the server knows that without computing them. */
  empty?: string[];
  /** Views that accept a range of time. */
  parts?: string[];
  start_ns?: string;
  span_ns?: number;
  view_start_ns?: number;
  /** How often the profile was replaced since the server started; changes while a job runs. */
  epoch?: number;
  frozen?: boolean;
  changed?: string;
  /** Why the files that the user chose are not shown. */
  refused?: string;
  job?: string;
}
