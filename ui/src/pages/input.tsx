// input.tsx: the page Input: the stages that bring data to the steps as a pipeline, which of them delays the others,
// and a link from a stage to the threads that run it.
import { getJson, inReport, type Row, type Table as TableData } from "../api";
import { go } from "../address";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command, say } from "../parts/panel";
import * as format from "../format";
import type { Found } from "../timeline/controller";
import { trackKey } from "../timeline/layout";
import { View } from "../parts/view";

/** The parts of the pipeline, in order. Stages with other names are work between reading and waiting. */
const PARTS = [
  { names: ["read", "advanced read"], title: "read" },
  { names: ["preprocessing"], title: "prepare" },
  { names: ["enqueue"], title: "hand over" },
  { names: ["wait"], title: "the step waits" },
];
const SHOWN = 5;

/** Opens the stage in the timeline, with the threads that run it on top. */
async function openStage(row: Row) {
  const q = "^" + String(row.stage).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
  if (inReport()) return;
  try {
    const found = await getJson<Found & { tracks: number[] }>("/api/search", { q, tracks: 1 });
    go({ page: "timeline", params: { q, pin: found.tracks.slice(0, 8).map(trackKey).join(",") } });
  } catch (e) {
    say((e as Error).message);
  }
}

function Pipeline(p: { rows: Row[] }) {
  const most = Math.max(1, ...p.rows.map((row) => Number(row.self_ns) || 0));
  const known = PARTS.flatMap((part) => part.names);
  const parts = PARTS.map((part) => ({ ...part, rows: p.rows.filter((row) => part.names.includes(String(row.category)) || (part.title === "prepare" && !known.includes(String(row.category)))) })).filter((part) => part.rows.length);
  return (
    <Panel title="Pipeline" remark="own time of the stages; a stage opens the timeline with its threads on top" copies={{ command: command("pipeline") }}>
      <ol class="pipeline">
        {parts.map((part) => (
          <li key={part.title}>
            <h3>{part.title} <small>{format.time(part.rows.reduce((sum, row) => sum + (Number(row.self_ns) || 0), 0))}</small></h3>
            {part.rows.slice(0, SHOWN).map((row) => (
              <button key={String(row.stage)} type="button" class={row.bottleneck === true ? "slowest" : ""} title={`${row.stage}\n${format.plural(Number(row.runs), "run")} on ${format.plural(Number(row.threads), "thread")}`} onClick={() => void openStage(row)}>
                <span class="bar" style={{ width: (100 * (Number(row.self_ns) || 0)) / most + "%" }} />
                <span class="name">{String(row.stage)}</span>
                <span class="value">{format.time(Number(row.self_ns) || 0)} · {format.plural(Number(row.threads), "thread")}{row.bottleneck === true ? " · slowest" : ""}</span>
              </button>
            ))}
            {part.rows.length > SHOWN && <small>and {part.rows.length - SHOWN} more in the table</small>}
          </li>
        ))}
        <li class="end"><h3>step</h3></li>
      </ol>
    </Panel>
  );
}

export function InputPage() {
  const stages = useAnswer<TableData>("/api/view", { name: "pipeline" });
  if (stages.error) return <Failure text={stages.error} />;
  if (!stages.value) return <Waiting what="The stages of the input pipeline are looked for." />;
  const rows = stages.value.rows;
  if (!rows.length) return <div class="page"><Panel title="Input" copies={{ command: command("pipeline") }}><Empty page="input">{stages.value.footer ?? "No input pipeline was recorded."}</Empty></Panel></div>;
  return (
    <div class="page">
      {stages.value.footer && <section class="verdict"><p>{stages.value.footer.trim().replace(/\s*\n\s*/g, " ")}</p></section>}
      <Pipeline rows={rows} />
      <View view="pipeline" title="Stages" shown={["stage", "kind", "category", "runs", "total_ns", "self_ns", "percent", "threads", "busy_ns", "per_run_ns", "bottleneck", "source_line"]} titles={{ self_ns: "own time", percent: "share", busy_ns: "threads busy", per_run_ns: "each run", bottleneck: "slowest" }} bar="self_ns" height={20} empty="" onOpen={(row) => void openStage(row)} />
    </div>
  );
}
