// files.tsx: the page Files: which files were opened, what was lost, repaired or doubtful, and all known facts; files
// can be added and removed, and everything can be saved as one file.
import { useEffect, useState } from "preact/hooks";
import { getJson, inReport, post, type Row } from "../api";
import * as format from "../format";
import { epoch, save, useAnswer } from "../load";
import { Failure, Panel, Waiting, command, files, refused, say } from "../parts/panel";
import { Table } from "../parts/table";
import { View } from "../parts/view";

interface Near {
  folder: number;
  in: string;
  name: string;
  bytes: number;
  modified_ns: number;
}
interface Choice {
  fixed?: string;
  files?: string[];
  near?: Near[];
  read_ns: number;
  read_bytes: number;
}

export function FilesPage() {
  return (
    <div class="page">
      <View view="sources" title="Inputs" empty="No input." height={12} shown={["path", "format", "producer", "container", "bytes", "packed_bytes", "rank", "ops", "events", "steps", "notes"]} titles={{ packed_bytes: "on disk" }} />
      {!inReport() && <Choose />}
      <View view="notes" title="Damage, losses and doubts" empty="Nothing was lost, repaired or left out." height={12} shown={["kind", "source", "text", "count", "offset"]} wide="text" />
      <View view="tracks" title="Tracks" empty="The files have no tracks of events." height={14} bar="busy_ns" />
      <Facts />
    </div>
  );
}

const nearColumns = [
  { name: "name", type: "text", unit: null },
  { name: "in", type: "text", unit: null },
  { name: "bytes", type: "int", unit: "bytes" },
  { name: "modified", type: "text", unit: null },
  { name: "estimate_ns", type: "int", unit: "ns" },
];

/** Downloads everything as one file. */
async function saveAll(setBusy: (busy: boolean) => void) {
  setBusy(true);
  try {
    save(await (await post("/api/save", "")).blob(), format.baseName(files.value[0] ?? "profile").replace(/(\.(json|gz|zst|opw|pb|sqlite))+$/, "").replace(/[^\w.-]+/g, "_") + ".opw");
    say("saved with the downloads of the browser");
  } catch (e) {
    say((e as Error).message);
  }
  setBusy(false);
}

function Choose() {
  const [choice, setChoice] = useState<Choice | null>(null);
  const [error, setError] = useState("");
  const [waiting, setWaiting] = useState("");
  const [saving, setSaving] = useState(false);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    getJson<Choice>("/api/files").then(setChoice, (e: Error) => setError(e.message));
  }, [epoch.value]);
  const choose = (body: string, what: string) => {
    setWaiting(what);
    post("/api/choose", body).catch((e: Error) => {
      setWaiting("");
      say(e.message);
    });
  };
  if (error) return <Failure text={error} />;
  const list = choice?.files ?? [];
  const rate = choice && choice.read_bytes > 0 ? choice.read_ns / choice.read_bytes : 0;
  const near = (choice?.near ?? []).map((n) => ({ name: n.name, in: n.in, bytes: n.bytes, modified: new Date(n.modified_ns / 1e6).toISOString().slice(0, 16).replace("T", " "), estimate_ns: rate ? Math.round(n.bytes * rate) : null, folder: n.folder }) as unknown as Row);
  return (
    <Panel title="Add, remove, save" remark={choice && !choice.fixed ? `${format.plural(list.length, "file")}, read in ${format.time(choice.read_ns)}` : undefined}>
      {refused.value && <p class="failure" role="alert">{refused.value}</p>}
      {choice?.fixed ? <p class="fact">{choice.fixed}</p> : (
        <>
          {list.length > 1 && (
            <ul class="chosen">
              {list.map((path) => (
                <li key={path}><span class="code">{path}</span> <button type="button" aria-label={"remove " + path} onClick={() => choose("remove\n" + path, `${format.baseName(path)} is removed`)}>remove</button></li>
              ))}
            </ul>
          )}
          <div class="bar">
            <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>add a file from the same {new Set((choice?.near ?? []).map((n) => n.folder)).size > 1 ? "folders" : "folder"} ({near.length})</button>
            <button type="button" disabled={saving} title="one file that opens in milliseconds" onClick={() => void saveAll(setSaving)}>{saving ? "saving…" : "save all as .opw"}</button>
            {waiting && !refused.value && <span class="fact" role="status">{waiting}; the page changes when the files are read</span>}
          </div>
          {open && (near.length ? <Table label="files beside those that are shown" columns={nearColumns} rows={near} titles={{ estimate_ns: "reads in about", in: "folder" }} height={8} onOpen={(row) => choose(`add\n${row.folder}\n${row.name}`, `${row.name} is added`)} /> : <p class="fact">No other files are there. Files of other folders are named on the command line: {command("ui")} FILE</p>)}
        </>
      )}
      {choice?.fixed && <button type="button" disabled={saving} onClick={() => void saveAll(setSaving)}>{saving ? "saving…" : "save all as .opw"}</button>}
    </Panel>
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
