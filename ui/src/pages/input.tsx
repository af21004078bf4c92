// input.tsx: the page Input: the stages that bring data to the steps, and which of them holds the others up.
import type { Table as TableData } from "../api";
import { go } from "../address";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import * as format from "../format";
import { View } from "../parts/view";

export function InputPage() {
  const stages = useAnswer<TableData>("/api/view", { name: "pipeline" });
  if (stages.error) return <Failure text={stages.error} />;
  if (!stages.value) return <Waiting what="The stages of the input pipeline are looked for." />;
  const rows = stages.value.rows;
  if (!rows.length) return <div class="page"><Panel title="Input" copies={{ command: command("pipeline") }}><Empty page="input">{stages.value.footer ?? "No input pipeline was recorded."}</Empty></Panel></div>;
  const slow = rows.find((row) => row.bottleneck === true);
  return (
    <div class="page">
      {slow && <section class="verdict"><p>The slowest stage is {String(slow.stage)}: {Number(slow.self_ns) > 0 ? `${format.time(Number(slow.self_ns))} of own time` : `${format.time(Number(slow.total_ns))}, with what runs inside it,`} in {format.plural(Number(slow.runs), "run")}{slow.source_line ? ` (${format.baseName(String(slow.source_line))})` : ""}.</p></section>}
      <View view="pipeline" title="Stages" shown={["stage", "kind", "category", "runs", "total_ns", "self_ns", "percent", "threads", "busy_ns", "per_run_ns", "bottleneck", "source_line"]} titles={{ self_ns: "own time", percent: "share", busy_ns: "threads busy", per_run_ns: "each run" }} bar="self_ns" height={24} empty="" onOpen={(row) => go({ page: "timeline", params: { q: String(row.stage).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") } })} />
    </div>
  );
}
