// parts.tsx: the parts around the canvas of the timeline: the names of the tracks, the range, the tooltip, and at the
// side the details of the selection, of an area or of a search.
import { useEffect, useState } from "preact/hooks";
import { getJson, inReport, type Table as TableData } from "../api";
import { address, change } from "../address";
import { PHASES, PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { useAnswer } from "../load";
import { concerns } from "../pages/advice";
import { EventDetails, type EventInfo } from "../pages/event";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";
import { parseSet, rangeText, type Controller, type Found } from "./controller";
import { axisStep, axisTime } from "./draw";
import { PathPanel, type CriticalPath } from "./path";

const sumColumns = [
  { name: "name", type: "text", unit: null },
  { name: "count", type: "int", unit: "count" },
  { name: "time_ns", type: "int", unit: "ns" },
  { name: "longest_ns", type: "int", unit: "ns" },
];

/** A separate component, because it changes with every frame of a move and the rest of the page does not. */
export function RangeText(p: { c: Controller }) {
  const range = p.c.range.value;
  const step = axisStep(range, 100);
  return (
    <span class="range" title={`${rangeText(range)} ns`}>
      {axisTime(Math.max(0, range.from), step)} … {axisTime(range.to, step)} · {format.time(range.to - range.from)}
    </span>
  );
}

export function Hover(p: { c: Controller }) {
  const hover = p.c.hover.value;
  if (!hover || !hover.text.length) return null;
  const right = hover.x > p.c.size.value.width * 0.6;
  return (
    <div class="hover" style={{ top: Math.min(hover.y + 18, p.c.size.value.height - 50) + "px", ...(right ? { right: p.c.size.value.width - hover.x + 8 + "px" } : { left: hover.x + 12 + "px" }) }}>
      {hover.text.map((line, i) => (
        <div key={i}>{line}</div>
      ))}
      <small>{axisTime(hover.t, axisStep(p.c.range.value, p.c.size.value.width))}</small>
    </div>
  );
}

export function Labels(p: { c: Controller; toggle: (name: "fold" | "pin", key: string) => void }) {
  const { c } = p;
  const top = c.top.value;
  const { height } = c.size.value;
  const blocks = c.layout.value.blocks.filter((b) => b.y + b.height > top && b.y < top + height);
  return (
    <div class="labels" role="list" aria-label="tracks" onWheel={(e) => c.scroll(c.top.value + e.deltaY)}>
      {blocks.map((b) => (
        <div key={b.key} role="listitem" class={"label " + b.kind} style={{ top: b.y - top + "px", height: b.height + "px" }} title={b.track ? [b.title, b.track.process, b.track.device, b.track.source].filter(Boolean).join("\n") : b.title}>
          <button type="button" class="fold" aria-expanded={!b.folded} aria-label={(b.folded ? "expand " : "collapse ") + b.title} onClick={() => p.toggle("fold", b.key)}>
            {b.kind === "track" && b.row_count === 1 ? "" : b.folded ? "▸" : "▾"}
          </button>
          <span class="name">{b.title}</span>
          {b.kind === "group" ? (
            <small>{b.detail}</small>
          ) : (
            <>
              {b.busy > 0 && <small title="part of the time in sight in which the outermost events of this track run">{format.percent(100 * (c.busy.value.get(b.key) ?? b.busy))}</small>}
              <button type="button" class={"pin" + (b.pinned ? " on" : "")} aria-pressed={b.pinned} aria-label={"pin " + b.title} onClick={() => p.toggle("pin", b.key)}>
                ⊤
              </button>
            </>
          )}
        </div>
      ))}
    </div>
  );
}

/** The colours of the phases; a click on one dims the others. */
export function Legend() {
  const chosen = address.value.params.phase ?? "";
  return (
    <div class="legend">
      {PHASES.filter((phase) => phase !== "unknown" && phase !== "idle").map((phase) => (
        <button key={phase} type="button" class={"plain" + (phase === chosen ? " on" : "")} aria-pressed={phase === chosen} title={phase === chosen ? "show all phases again" : `dim everything but ${PHASE_TITLES[phase]}`} onClick={() => change({ phase: phase === chosen ? "" : phase })}>
          <i style={{ background: PHASE_COLOURS[phase] }} />
          {PHASE_TITLES[phase]}
        </button>
      ))}
    </div>
  );
}

export function Side(p: { c: Controller; path: CriticalPath | null }) {
  const { c } = p;
  const state = address.value.params;
  const area = /^(\d+)-(\d+):(.*)$/.exec(state.area ?? "");
  if (area) return <AreaPanel c={c} from={Number(area[1])} to={Number(area[2])} keys={parseSet(area[3])} />;
  if (c.selected.value)
    return (
      <aside class="side">
        <EventDetails info={c.selected.value} chain={c.chain.value} onEvent={(id) => c.select(id)} onFit={() => c.fit()} />
        {!c.selected.value.waits && <Concerning info={c.selected.value} />}
      </aside>
    );
  if (c.found.value)
    return (
      <aside class="side">
        <Panel title={state.q || !state.code ? "Search" : "Events of " + format.baseName(state.code)} remark={format.plural(c.found.value.names, "name")} copies={!state.q && state.code ? { command: command("lines") } : { sql: `SELECT name, count(*) AS count, sum(dur) AS time_ns FROM event WHERE regexp_matches(name, '${(state.q ?? "").replace(/'/g, "''")}', 'i') GROUP BY name ORDER BY time_ns DESC` }}>
          {c.found.value.rows.length ? <Table label="matching names" columns={sumColumns} rows={c.found.value.rows as never} shown={["name", "count", "time_ns"]} sort="-time_ns" bar="time_ns" onOpen={(row) => c.select(Number(row.longest))} /> : <Empty>{!state.q && state.code ? "No event runs this line: it was only sampled, or only made operations that did not run. " : ""}No name of an event matches. The search is a regular expression without regard to case; Escape ends it.</Empty>}
        </Panel>
      </aside>
    );
  return p.path ? <PathPanel c={c} path={p.path} /> : null;
}

/** Findings that name the selection: the event, its operation or a line of its stack. */
function Concerning(p: { info: EventInfo }) {
  const advice = useAnswer<TableData>(inReport() ? null : "/api/advise");
  const rows = (advice.value?.rows ?? []).filter((row) => row.checked && concerns(row, p.info));
  if (!rows.length) return null;
  return (
    <Panel title="Findings about it" copies={{ command: command("advise"), sql: "SELECT * FROM finding" }}>
      <ul class="findings">
        {rows.map((row, i) => (
          <li key={i}>
            <b class="gain">{typeof row.saving_high_ns === "number" ? "−" + format.time(row.saving_high_ns) : "–"}</b>
            <span><a href={"#/advice?rule=" + encodeURIComponent(String(row.rule))}>{String(row.what)}</a> <span class={"severity " + row.severity}>{String(row.severity)}</span></span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function AreaPanel(p: { c: Controller; from: number; to: number; keys: Set<string> }) {
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState("");
  const blocks = p.c.layout.value.blocks.filter((b) => p.keys.has(b.key) && b.track);
  const tracks = [...new Set(blocks.map((b) => b.track?.id))].join(",");
  useEffect(() => {
    setFound(null);
    if (inReport()) return;
    getJson<Found>("/api/area", { from: p.from, to: p.to, tracks }).then(setFound, (e: Error) => setError(e.message));
  }, [p.from, p.to, tracks]);
  return (
    <aside class="side">
      <Panel title="Area" remark={`${format.time(p.to - p.from)} on ${format.plural(blocks.length, "track")}`} copies={{
        command: command("op", "--time-range", `${p.from}ns:${p.to}ns`),
        sql: `SELECT name, count(*) AS count, sum(least(ts + dur, z + ${p.to}) - greatest(ts, z + ${p.from})) AS time_ns\nFROM event, (SELECT min(ts) AS z FROM event)\nWHERE track_id IN (${tracks}) AND ts < z + ${p.to} AND ts + dur > z + ${p.from}\nGROUP BY name ORDER BY time_ns DESC`,
        markdown: () => (found ? toMarkdown(sumColumns, found.rows as never) : ""),
        csv: () => (found ? toCsv(sumColumns, found.rows as never) : ""),
      }}>
        {error && <Failure text={error} />}
        {!found && !error && <Waiting what="The events of the area are added up." />}
        {found && (
          <>
            <p class="fact">{format.plural(found.events ?? 0, "event")} of {format.plural(found.names, "name")}. Times are the parts inside the area; an event inside another counts in both.</p>
            <Table label="what is in the area" columns={sumColumns} rows={found.rows as never} shown={["name", "count", "time_ns"]} bar="time_ns" sort="-time_ns" onOpen={(row) => p.c.select(Number(row.longest))} height={24} />
          </>
        )}
      </Panel>
    </aside>
  );
}