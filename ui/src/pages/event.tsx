// event.tsx: shows all that is known about one event or sample, beside the timeline: times, track, links, its call
// stack with source lines, its arguments, and how it compares with others of its name. The facts of the tile are shown
// at once; the rest follows.
import type { ComponentChildren } from "preact";
import { address, change } from "../address";
import { PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { Panel } from "../parts/panel";
import type { Chain } from "../timeline/controller";

export interface Frame {
  frame: number;
  file: string;
  line: number;
  function: string;
  text: string;
}
export interface EventInfo {
  /** The part that is still loading: all facts but those of the tile, or links and events of the same name. */
  waits?: "facts" | "others";
  event: number; // 0 for a sample
  sample?: number;
  weight?: number;
  metric?: string;
  unit?: string;
  label?: string;
  cpu?: number;
  row: number;
  track: number;
  name: string;
  op: string;
  type: string;
  track_name: string;
  process: string;
  category: string;
  phase: string;
  ts: number;
  dur_ns: number | null;
  self_ns: number | null;
  step: number | null;
  bytes?: number;
  stack: Frame[];
  stack_of: "call" | "creation";
  links: { event: number; direction: "from" | "to"; kind: string; ts: number; row: number; name: string }[];
  same_name?: { count: number; total_ns: number; min_ns: number; max_ns: number; longer: number };
  args?: string;
}

/** The facts that a cell of a tile holds, until the server has answered. */
export const fromTile = (about: Partial<EventInfo>): EventInfo => ({ event: 0, row: -1, track: 0, name: "", op: "", type: "", track_name: "", process: "", category: "", phase: "unknown", ts: 0, dur_ns: null, self_ns: null, step: null, stack: [], stack_of: "call", links: [], waits: "facts", ...about });

/** Facts of a sample, which has no duration of its own: it stands for a part of its metric. */
export const fromSample = (info: EventInfo, row: number): EventInfo => fromTile({ ...info, row, waits: undefined });

/** The sampled function on the page Flame, between its callers and callees. */
const flameOf = (e: EventInfo) => "#/flame?" + new URLSearchParams({ view: "samples", only: e.name }).toString();

function Fact(p: { name: string; children: ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{p.name}</th>
      <td>{p.children}</td>
    </tr>
  );
}

/** Splits arguments, which are JSON objects one after the other; text that is not JSON is shown unchanged. */
function argumentRows(text: string): [string, string][] {
  try {
    const rows = Object.entries(JSON.parse(text) as Record<string, unknown>);
    return rows.map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]);
  } catch {
    return [["", text]];
  }
}

export function EventDetails(p: { info: EventInfo; chain?: Chain | null; onEvent: (id: number) => void; onFit: () => void }) {
  const e = p.info;
  const same = e.same_name;
  const sampled = e.sample !== undefined;
  const first = e.stack.find((f) => f.line > 0) ?? e.stack[0];
  return (
    <Panel title={e.name || (sampled ? "sample" : "event")} class={"details" + (e.waits ? " waits-" + e.waits : "")} copies={{
      sql: sampled ? `SELECT * FROM sample WHERE id = ${e.sample}` : `SELECT * FROM event WHERE id = ${e.event}`,
      markdown: () => `**${e.name}** — ${e.dur_ns === null ? "duration not known" : format.time(e.dur_ns)} at ${format.time(e.ts)} on ${e.track_name}` + (first?.line ? ` (${first.file}:${first.line})` : ""),
    }}>
      <table class="facts">
        <tbody>
          {sampled ? e.metric !== undefined && <Fact name="weight"><b>{format.cell(e.weight ?? 0, { type: "int", unit: e.unit === "ns" || e.unit === "bytes" ? e.unit : "count" })}</b> of {e.metric}</Fact> : (
            <Fact name="duration">
              {e.waits === "facts" ? "…" : e.dur_ns === null ? "not known" : <b title={e.dur_ns + " ns"}>{format.time(e.dur_ns)}</b>}{" "}
              <button type="button" onClick={p.onFit}>fit (f)</button>
            </Fact>
          )}
          {e.self_ns !== null && e.self_ns !== e.dur_ns && <Fact name="own time"><span title={e.self_ns + " ns"}>{format.time(e.self_ns)}</span></Fact>}
          <Fact name={sampled ? "time" : "start"}>{e.waits === "facts" ? "…" : <span title={e.ts + " ns"}>{format.time(e.ts)}</span>}</Fact>
          {e.phase !== "unknown" && <Fact name="phase"><i class="swatch" style={{ background: PHASE_COLOURS[e.phase] }} />{PHASE_TITLES[e.phase] ?? e.phase}</Fact>}
          {e.step !== null && <Fact name="step">{e.step}</Fact>}
          <Fact name="track">{[e.process, e.track_name].filter(Boolean).join(" · ")}</Fact>
          {e.cpu !== undefined && <Fact name="processor">{e.cpu}</Fact>}
          {e.label && <Fact name="labels">{e.label}</Fact>}
          {e.op && e.op !== e.name && <Fact name="operation">{e.op}</Fact>}
          {e.type && e.type !== e.name && <Fact name="type">{e.type}</Fact>}
          {e.category && <Fact name="category">{e.category}</Fact>}
          {e.bytes !== undefined && <Fact name="bytes">{format.bytes(e.bytes)}</Fact>}
          {same && same.count > 1 && (
            <Fact name="same name">
              {format.count(same.count)} events, {format.time(same.total_ns)} in all, {format.time(same.min_ns)} to {format.time(same.max_ns)}; {same.longer === 0 ? "none takes longer" : format.count(same.longer) + " take longer"}{" "}
              <button type="button" onClick={() => change({ q: "^" + e.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$", sel: "" })}>show all</button>
            </Fact>
          )}
        </tbody>
      </table>
      {sampled && !e.waits && <p class="fact"><a class="button" href={flameOf(e)}>callers and callees of all samples in it</a></p>}
      {e.links.length > 0 && (
        <>
          <h3>
            Linked events{" "}
            <button type="button" aria-pressed={address.value.params.flow === "all"} class={address.value.params.flow === "all" ? "on" : ""} onClick={() => change({ flow: address.value.params.flow === "all" ? "" : "all" })}>whole chain</button>
          </h3>
          {p.chain && <p class="fact">{p.chain.events} events are joined by {p.chain.links.length} links{p.chain.more ? "; there are more" : ""}.</p>}
          <ul class="links">
            {e.links.map((l) => (
              <li key={l.event + l.direction}>
                {l.direction === "to" ? "→ " : "← "}
                <button type="button" onClick={() => p.onEvent(l.event)}>{l.name || "event " + l.event}</button> <small>{l.kind.replace("_", " ")}, {l.ts >= e.ts ? "+" : "−"}{format.time(Math.abs(l.ts - e.ts))}</small>
              </li>
            ))}
          </ul>
        </>
      )}
      {e.stack.length > 0 && (
        <>
          <h3>{sampled ? "Call stack" : e.stack_of === "call" ? "Called from" : "Created by"}</h3>
          <ol class="stack">
            {e.stack.map((f) => (
              <li key={f.frame}>
                {f.line > 0 ? <><a href={"#/code?file=" + encodeURIComponent(f.file) + "&line=" + f.line} title={f.file}>{format.baseName(f.file || "?")}:{f.line}</a> {f.function}</> : <span title={f.file}>{f.function || f.file || "?"}</span>}
                {f.text && <code>{f.text}</code>}
              </li>
            ))}
          </ol>
        </>
      )}
      {e.args && (
        <>
          <h3>Arguments</h3>
          <table class="facts">
            <tbody>
              {argumentRows(e.args).map(([key, value]) => (
                <Fact key={key} name={key}><span class="code">{value}</span></Fact>
              ))}
            </tbody>
          </table>
        </>
      )}
      <p class="fact">{sampled ? `sample ${e.sample}` : `event ${e.event}`}{address.value.page === "timeline" ? "; . and , go to the next and the previous one of its row" : ""}</p>
    </Panel>
  );
}
