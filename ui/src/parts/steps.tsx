// steps.tsx: a chart of the steps: a bar per step, stacked by phase; slow steps are marked. Many steps share a bar: then it
// shows the longest of them.
import { useMemo, useState } from "preact/hooks";
import type { Row } from "../api";
import { PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { viewStart } from "./panel";

const STACK = ["input", "host", "initialisation", "allocation", "launch", "host_to_device", "compute", "communication", "device_to_host", "synchronisation", "run_queue", "idle"];
const WIDTH = 640;
const HEIGHT = 130;
const LEFT = 52;
const BARS_MOST = 150;

/** The time of a step on the timeline, with a little around it. */
export function stepRange(row: Row): string {
  const [start, length] = [Number(row.start_ns) + viewStart.value, Number(row.duration_ns)];
  return `${Math.round(start - length * 0.02)}-${Math.round(start + length * 1.02)}`;
}

export function median(sorted: number[]): number {
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

export function StepChart(p: { rows: Row[]; onStep: (row: Row) => void }) {
  const [at, setAt] = useState(-1);
  const bars = useMemo(() => {
    const each = Math.ceil(p.rows.length / BARS_MOST);
    const out: { row: Row; count: number }[] = [];
    for (let i = 0; i < p.rows.length; i += each) {
      const part = p.rows.slice(i, i + each);
      out.push({ row: part.reduce((a, b) => (Number(b.duration_ns) > Number(a.duration_ns) ? b : a)), count: part.length });
    }
    return out;
  }, [p.rows]);
  const most = Math.max(1, ...bars.map((bar) => Number(bar.row.duration_ns)));
  const width = (WIDTH - LEFT) / bars.length;
  const used = STACK.filter((phase) => p.rows.some((row) => Number(row[phase + "_ns"]) > 0));
  const shown = bars[at]?.row;
  const ranks = new Set(p.rows.map((row) => row.rank)).size;
  // The number of a step stands below its first bar, as far as there is room.
  const numbered = useMemo(() => {
    const out = new Set<number>();
    let last = -Infinity;
    bars.forEach((bar, i) => {
      if ((i > 0 && bars[i - 1].row.step === bar.row.step && width <= 40) || (i - last) * width < 8 * String(bar.row.step).length + 8) return;
      out.add(i);
      last = i;
    });
    return out;
  }, [bars, width]);
  return (
    <figure class="steps">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 18}`} role="img" aria-label={`${p.rows.length} steps, the longest ${format.time(most)}; the table of the command steps has every number`} onPointerLeave={() => setAt(-1)}>
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line x1={LEFT} x2={WIDTH} y1={HEIGHT - part * (HEIGHT - 10)} y2={HEIGHT - part * (HEIGHT - 10)} class="grid" />
            <text x={LEFT - 4} y={HEIGHT - part * (HEIGHT - 10) + 4} class="axis end">{part ? format.time(most * part) : "0"}</text>
          </g>
        ))}
        {bars.map((bar, i) => {
          const total = Number(bar.row.duration_ns);
          const scale = (HEIGHT - 10) / most;
          const known = used.reduce((sum, phase) => sum + Number(bar.row[phase + "_ns"]), 0);
          let y = HEIGHT;
          const parts = known > 0 ? used.map((phase) => [phase, Number(bar.row[phase + "_ns"])] as const) : ([["unknown", total]] as const);
          return (
            <g key={i} class={"step" + (i === at ? " at" : "")} onPointerEnter={() => setAt(i)} onClick={() => p.onStep(bar.row)}>
              <rect x={LEFT + i * width} y={0} width={width} height={HEIGHT + 18} fill="transparent" />
              {parts.map(([phase, ns]) => {
                const height = Math.max(0, ns * scale);
                y -= height;
                return <rect key={phase} x={LEFT + i * width + Math.min(2, width * 0.1)} y={y} width={Math.max(0.6, Math.min(60, width - Math.min(4, width * 0.2)))} height={height} fill={PHASE_COLOURS[phase]} />;
              })}
              {bar.row.outlier === true && <text x={LEFT + i * width + Math.min(30, width / 2)} y={Math.max(9, y - 3)} class="outlier">▼</text>}
              {numbered.has(i) && <text x={LEFT + i * width + 3} y={HEIGHT + 13} class="axis">{String(bar.row.step) + (ranks > 1 && width > 40 ? " r" + bar.row.rank : "")}</text>}
            </g>
          );
        })}
      </svg>
      <figcaption>
        {shown ? (
          <span>
            step {String(shown.step)}{shown.rank !== null && shown.rank !== undefined ? `, rank ${shown.rank}` : ""}: <b>{format.time(Number(shown.duration_ns))}</b>
            {bars[at].count > 1 ? ` (the longest of ${bars[at].count})` : ""}
            {used.filter((phase) => Number(shown[phase + "_ns"]) > 0).map((phase) => ` · ${PHASE_TITLES[phase]} ${format.time(Number(shown[phase + "_ns"]))}`)}
          </span>
        ) : (
          <span class="legend">
            {used.map((phase) => (
              <span key={phase}>
                <i style={{ background: PHASE_COLOURS[phase] }} />
                {PHASE_TITLES[phase]}
              </span>
            ))}
            {!used.length && "the phases of the steps are not known"} · click a step to see it in the timeline
          </span>
        )}
      </figcaption>
    </figure>
  );
}
