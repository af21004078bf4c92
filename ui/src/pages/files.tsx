// files.tsx: the page Files: what was opened, what was lost, repaired or doubtful, and every fact that is known.
import { useState } from "preact/hooks";
import { useAnswer } from "../load";
import { Failure, Panel, Waiting, command } from "../parts/panel";
import { View } from "../parts/view";

export function FilesPage() {
  return (
    <div class="page">
      <View view="sources" title="Inputs" empty="No input." height={12} shown={["path", "format", "producer", "container", "bytes", "packed_bytes", "rank", "ops", "events", "steps", "notes"]} titles={{ packed_bytes: "on disk" }} />
      <View view="notes" title="Damage, losses and doubts" empty="Nothing was lost, repaired or left out." height={12} shown={["kind", "source", "text", "count", "offset"]} wide="text" />
      <View view="tracks" title="Tracks" empty="The files have no tracks of events." height={14} bar="busy_ns" />
      <Facts />
    </div>
  );
}

function Facts() {
  const [open, setOpen] = useState(false);
  const info = useAnswer<unknown>(open ? "/api/info" : null);
  return (
    <Panel title="All facts" copies={{ command: command("info", "--json") }}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "hide" : "show what the files say about themselves"}</button>
      {open && (info.error ? <Failure text={info.error} /> : info.value ? <pre class="json">{JSON.stringify(info.value, null, 1)}</pre> : <Waiting />)}
    </Panel>
  );
}
