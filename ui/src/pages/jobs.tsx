// jobs.tsx: the page Jobs: running jobs under the daemon, as `opwatch top` shows them: step times with their trend,
// phases, operations, ranks; and anomalies that the daemon found, with the minute that it saved. It polls once a second
// until it is frozen.
import { useEffect, useState } from "preact/hooks";
import { change, param } from "../address";
import { getJson, post, type Row, type Table as TableData } from "../api";
import { PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { download } from "../load";
import { Empty, Failure, Panel, Waiting, say } from "../parts/panel";
import { Table, toCsv, toMarkdown } from "../parts/table";

interface Job {
  name: string;
  path: string;
  state: string;
  processes: number;
  has_steps: boolean;
  steps: number;
  step_ns: number | null;
  last_ns: number | null;
  since_ns: number | null;
  trend: number | null;
  cpu: number | null;
  device: number | null;
  gpu: number | null;
  slowest_rank: number;
  slowest_by: number | null;
  records: number;
  dropped: number;
  damaged: number;
  phases: Record<string, number>;
  ranks: { rank: number; steps: number; step_ns: number | null; last_ns: number | null; own_ns: number | null }[];
  ops: Row[];
  recent: number[];
  pids: number[];
}

const column = (name: string, type: string, unit: string | null) => ({ name, type, unit });
const JOB_COLUMNS = [column("name", "text", null), column("state", "text", null), column("steps", "int", "count"), column("step_ns", "int", "ns"), column("last_ns", "int", "ns"), column("trend", "real", "percent"), column("since_ns", "int", "ns"), column("cpu", "real", null), column("device", "real", "percent"), column("dropped", "int", "count")];
const OP_COLUMNS = [column("name", "text", null), column("self_ns", "int", "ns"), column("percent", "real", "percent"), column("runs", "real", null)];
const RANK_COLUMNS = [column("rank", "int", null), column("steps", "int", "count"), column("step_ns", "int", "ns"), column("own_ns", "int", "ns"), column("last_ns", "int", "ns")];

export function JobsPage() {
  const [answer, setAnswer] = useState<{ why: string; jobs: Job[] } | null>(null);
  const [found, setFound] = useState<TableData | null>(null);
  const [error, setError] = useState("");
  const frozen = param("frozen") === "1";
  useEffect(() => {
    let stopped = false;
    let timer = 0;
    const ask = async () => {
      try {
        const [now, anomalies] = await Promise.all([getJson<{ why: string; jobs: Job[] }>("/api/jobs"), getJson<TableData>("/api/anomalies")]);
        if (stopped) return;
        setFound((old) => (old && JSON.stringify(old) === JSON.stringify(anomalies) ? old : anomalies));
        setAnswer(now);
        setError("");
      } catch (e) {
        if (!stopped) setError((e as Error).message);
      }
      if (!stopped && !frozen) timer = window.setTimeout(() => void ask(), 1000);
    };
    void ask();
    return () => {
      stopped = true;
      window.clearTimeout(timer);
    };
  }, [frozen]);
  if (error) return <Failure text={error} />;
  if (!answer) return <Waiting />;
  const rows = answer.jobs.map((job) => ({ ...job, trend: job.trend === null ? null : 100 * job.trend, device: job.device === null ? null : 100 * job.device }) as unknown as Row);
  const chosen = answer.jobs.find((job) => job.name === param("job")) ?? answer.jobs[0];
  return (
    <div class="page">
      <div class="bar">
        <button type="button" aria-pressed={frozen} class={frozen ? "on" : ""} onClick={() => change({ frozen: frozen ? "" : "1" })}>{frozen ? "go on" : "freeze"}</button>
      </div>
      <Panel title="Jobs" remark={format.plural(rows.length, "job")} copies={{ command: "opwatch top --json" }}>
        {rows.length > 0 && answer.why && <Failure text={answer.why + " The page shows the last answer."} />}
        {rows.length ? <Table label="jobs" columns={JOB_COLUMNS} rows={rows} titles={{ step_ns: "step", last_ns: "last step", since_ns: "since a step", cpu: "CPUs", device: "device busy" }} height={10} onOpen={(row) => change({ job: String(row.name) })} isMarked={(row) => row.name === chosen?.name} /> : (
          <>
            <Empty>{answer.why || "No job runs under the daemon: opwatch record --job NAME -- COMMAND starts one."}</Empty>
            <pre>opwatch daemon{"\n"}opwatch record --job NAME -- PROGRAM</pre>
          </>
        )}
      </Panel>
      {found && <Anomalies found={found} />}
      {chosen && <One job={chosen} />}
    </div>
  );
}

/** Opens a recording that the daemon has, in a separate page. */
async function look(kind: "file" | "job", name: string) {
  try {
    const { address } = (await (await post("/api/minute", kind + "\n" + name)).json()) as { address: string };
    if (!window.open(address, "_blank")) say("the browser did not open a new page; allow it for this address");
  } catch (e) {
    say((e as Error).message);
  }
}

function Anomalies(p: { found: TableData }) {
  const { found } = p;
  const shown = ["time", "job", "kind", "why", "saved", "bytes"];
  const columns = found.columns.filter((c) => shown.includes(c.name));
  return (
    <Panel title="Anomalies" remark={found.rows.length ? "Enter or a click opens the minute around one" : undefined} copies={{ command: "opwatch jobs --anomalies", markdown: () => toMarkdown(columns, found.rows), csv: () => toCsv(columns, found.rows) }}>
      {found.rows.length ? (
        <Table label="anomalies" columns={found.columns} rows={found.rows} shown={shown} titles={{ saved: "minute saved", bytes: "size" }} wide="why" height={8} onOpen={(row) => (row.saved ? void look("file", String(row.file)) : say("the minute around it is saved when it is over"))} />
      ) : (
        <Empty>{found.footer ?? "No job became slow or stopped. To detect that, start the daemon with: opwatch daemon --on-slowdown 20% --on-stall 30s"}</Empty>
      )}
    </Panel>
  );
}

function One(p: { job: Job }) {
  const { job } = p;
  const total = Object.values(job.phases).reduce((a, b) => a + Math.max(0, b), 0);
  const most = Math.max(1, ...job.recent);
  return (
    <div class="columns">
      <div>
        <Panel title={job.name} remark={job.has_steps ? "the last steps" : "no steps are known"} copies={{ command: "opwatch top --json" }}>
          {job.recent.length > 1 && (
            <svg viewBox="0 0 600 80" role="img" aria-label={"durations of the last steps, the longest " + format.time(most)} style={{ width: "100%" }}>
              {job.recent.map((ns, i) => <rect key={i} x={(i * 600) / job.recent.length} y={80 - (76 * ns) / most} width={Math.max(1, 600 / job.recent.length - 1)} height={(76 * ns) / most} fill={PHASE_COLOURS.compute}><title>{format.time(ns)}</title></rect>)}
            </svg>
          )}
          <div class="phasebar" role="img" aria-label="phases of a step">
            {Object.entries(job.phases).filter(([, ns]) => ns > 0).map(([phase, ns]) => <span key={phase} style={{ width: (100 * ns) / Math.max(1, total) + "%", background: PHASE_COLOURS[phase] ?? PHASE_COLOURS.unknown }} title={`${PHASE_TITLES[phase] ?? phase}: ${format.time(ns)}`} />)}
          </div>
          <p class="legend">
            {Object.entries(job.phases).filter(([, ns]) => ns > 0).map(([phase, ns]) => <span key={phase}><i style={{ background: PHASE_COLOURS[phase] ?? PHASE_COLOURS.unknown }} />{PHASE_TITLES[phase] ?? phase} {format.time(ns)}</span>)}
          </p>
          {job.slowest_rank >= 0 && <p>Rank {job.slowest_rank} is the slowest{job.slowest_by !== null ? `, ${format.percent(100 * job.slowest_by)} slower than the median rank` : ""}.</p>}
          {job.dropped > 0 && <p class="failure">{format.count(job.dropped)} records were lost: the program made them faster than they could be read.</p>}
          <p class="fact">{format.plural(job.processes, "process").replace("processs", "processes")}{job.pids.length ? `: ${job.pids.join(", ")}` : ""} · {format.count(job.records)} records</p>
          {job.pids.length > 0 && <p class="fact">What its threads do now: <code>opwatch stacks --job {format.shellWord(job.name)}</code></p>}
          <div class="bar">
            <button type="button" title={`opwatch ui --job ${job.name} --last 60s`} onClick={() => void look("job", job.name)}>timeline of the last 60 s</button>
            <button type="button" title={`opwatch record --last 60s --job ${job.name} -o ${job.name}.opw`} onClick={() => void post("/api/keep", job.name).then((answer) => download(answer, job.name), (e: Error) => say(e.message))}>keep the last 60 s</button>
          </div>
        </Panel>
        {job.ranks.length > 1 && <Panel title="Ranks" copies={{ command: "opwatch top --json", markdown: () => toMarkdown(RANK_COLUMNS, job.ranks as unknown as Row[]), csv: () => toCsv(RANK_COLUMNS, job.ranks as unknown as Row[]) }}><Table label="ranks" columns={RANK_COLUMNS} rows={job.ranks as unknown as Row[]} bar="own_ns" titles={{ step_ns: "step", own_ns: "without waiting", last_ns: "last" }} height={12} /></Panel>}
      </div>
      <Panel title="Operations" remark={job.has_steps ? "per step" : "per second"} copies={{ command: "opwatch top --json", markdown: () => toMarkdown(OP_COLUMNS, job.ops), csv: () => toCsv(OP_COLUMNS, job.ops) }}>
        {job.ops.length ? <Table label="operations of the job" columns={OP_COLUMNS} rows={job.ops} bar="self_ns" titles={{ self_ns: "own time", percent: "share" }} height={20} /> : <Empty>no operations yet</Empty>}
      </Panel>
    </div>
  );
}
