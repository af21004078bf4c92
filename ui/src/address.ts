// address.ts: the state of the page is its address: #/page?key=value. Reload, Back and a second browser show the same
// state.
import { signal } from "@preact/signals";
import { token } from "./api";

export interface Address {
  page: string;
  params: Record<string, string>;
}

function parse(hash: string): Address {
  const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
  const params: Record<string, string> = {};
  new URLSearchParams(query ?? "").forEach((value, key) => (params[key] = value));
  return { page: path || "start", params };
}

export function format(to: Address): string {
  const query = new URLSearchParams(Object.entries(to.params).filter(([, value]) => value !== "")).toString();
  return "#/" + to.page + (query ? "?" + query : "");
}

export const address = signal<Address>({ page: "start", params: {} });

export function readAddress() {
  address.value = parse(location.hash);
}

/** The parameter that is kept when another page is opened: the part of the time that all pages show. */
const KEPT = "range";

/** Goes to another state. `replace` replaces the entry of the browser history: for intermediate states, as while
 * panning. */
export function go(to: Address, replace = false) {
  const kept = address.value.params[KEPT];
  if (to.page !== address.value.page && kept && !(KEPT in to.params)) to = { page: to.page, params: { ...to.params, [KEPT]: kept } };
  const hash = format(to);
  if (hash === format(address.value) && location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  address.value = to;
}

/** Changes some parameters of this page; "" removes one. */
export function change(params: Record<string, string>, replace = false) {
  const all = { ...address.value.params, ...params };
  for (const key of Object.keys(all)) if (all[key] === "") delete all[key];
  go({ page: address.value.page, params: all }, replace);
}

/** Links inside the page are states, too: they keep the parameters that `go` keeps. */
export function followLinks(e: MouseEvent) {
  const link = (e.target as Element | null)?.closest?.("a[href^='#/']");
  if (!link || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  go(parse(link.getAttribute("href") ?? ""));
}

export const param = (key: string) => address.value.params[key] ?? "";

/** A link that opens this state in another browser of the same user: it includes the token. */
export const link = () => location.origin + location.pathname + "#t=" + token() + format(address.value).slice(1);
