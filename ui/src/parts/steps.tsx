// steps.tsx: a chart of the steps: a bar per step, stacked by phase; slow steps are marked. If there are many steps
// they share bars: then a bar shows the longest of them.
import { useMemo, useRef, useState } from "preact/hooks";
import { format as hash } from "../address";
import type { Row } from "../api";
import { PHASE_COLOURS, PHASE_TITLES } from "../colours";
import * as format from "../format";
import { viewStart } from "./panel";

const STACK = ["input", "host", "initialisation", "allocation", "launch", "host_to_device", "compute", "communication", "device_to_host", "synchronisation", "run_queue", "idle"];
const WIDTH = 640;
const HEIGHT = 130;
const LEFT = 52;
const BARS_MOST = 150;

/** The range of a step on the timeline, with a little room around it. */
export function stepRange(row: Row): string {
  const [start, length] = [Number(row.start_ns) + viewStart.value, Number(row.duration_ns)];
  return `${Math.round(start - length * 0.02)}-${Math.round(start + length * 1.02)}`;
}

export function median(sorted: number[]): number {
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** A drag over bars, or Shift with the arrows, chooses steps: onBrush receives the time from the first to the end of
 * the last. */
export interface StepChartProps {
  rows: Row[];
  onStep: (row: Row) => void;
  chosen?: [number, number] | null;
  onBrush?: (range: [number, number] | null) => void;
}

export function StepChart(p: StepChartProps) {
  const [at, setAt] = useState(-1);
  const [brush, setBrush] = useState<[number, number] | null>(null); // range of bars while the user drags
  const drawing = useRef<SVGSVGElement>(null);
  const bars = useMemo(() => {
    const each = Math.ceil(p.rows.length / BARS_MOST);
    const out: { row: Row; count: number; start: number; end: number }[] = [];
    for (let i = 0; i < p.rows.length; i += each) {
      const part = p.rows.slice(i, i + each);
      const starts = part.map((row) => Number(row.start_ns));
      const ends = part.map((row) => Number(row.start_ns) + Number(row.duration_ns));
      out.push({ row: part.reduce((a, b) => (Number(b.duration_ns) > Number(a.duration_ns) ? b : a)), count: part.length, start: Math.min(...starts), end: Math.max(...ends) });
    }
    return out;
  }, [p.rows]);
  const most = Math.max(1, ...bars.map((bar) => Number(bar.row.duration_ns)));
  const width = (WIDTH - LEFT) / bars.length;
  const used = STACK.filter((phase) => p.rows.some((row) => Number(row[phase + "_ns"]) > 0));
  const shown = bars[at]?.row;
  const ranks = new Set(p.rows.map((row) => row.rank)).size;
  // The number of a step is written below its first bar, as far as there is room.
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
  const barAt = (e: PointerEvent) => {
    const box = drawing.current?.getBoundingClientRect();
    return box ? Math.max(0, Math.min(bars.length - 1, Math.floor((((e.clientX - box.left) / box.width) * WIDTH - LEFT) / width))) : 0;
  };
  const choose = (a: number, b: number) => {
    const part = bars.slice(Math.min(a, b), Math.max(a, b) + 1);
    p.onBrush?.([Math.min(...part.map((bar) => bar.start)), Math.max(...part.map((bar) => bar.end))]);
  };
  const isChosen = (bar: { start: number; end: number }, i: number) => (brush ? i >= Math.min(...brush) && i <= Math.max(...brush) : !!p.chosen && bar.start >= p.chosen[0] && bar.end <= p.chosen[1]);
  const onKey = (e: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -bars.length, End: bars.length };
    if (e.key in moves) {
      const from = at < 0 ? (moves[e.key] > 0 ? -1 : bars.length) : at;
      const to = Math.max(0, Math.min(bars.length - 1, from + moves[e.key]));
      if (e.shiftKey && p.onBrush) {
        const next: [number, number] = [brush ? brush[0] : Math.max(0, at), to];
        setBrush(next);
        choose(...next);
      } else setBrush(null);
      setAt(to);
    } else if (e.key === "Enter" && bars[at]) p.onStep(bars[at].row);
    else if (e.key === "Escape") {
      setBrush(null);
      p.onBrush?.(null);
    } else return;
    e.preventDefault();
  };
  return (
    <figure class="steps">
      <svg ref={drawing} viewBox={`0 0 ${WIDTH} ${HEIGHT + 18}`} role="application" tabindex={0} aria-label={`${p.rows.length} steps, the longest ${format.time(most)}; arrows move, Shift with arrows chooses steps, Enter opens one; the table of the command steps has every number`} onKeyDown={onKey} onPointerLeave={() => setAt(-1)} onPointerDown={(e) => {
        if (!p.onBrush || e.button !== 0) return;
        e.currentTarget.setPointerCapture(e.pointerId);
        setBrush([barAt(e), barAt(e)]);
      }} onPointerMove={(e) => {
        setAt(barAt(e));
        if (brush && e.buttons & 1) setBrush([brush[0], barAt(e)]);
      }} onPointerUp={(e) => {
        if (brush && brush[0] !== barAt(e)) choose(brush[0], barAt(e));
        else if (brush && bars[brush[0]]) p.onStep(bars[brush[0]].row);
        setBrush(null);
      }}>
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
            <g key={i} class={"step" + (i === at ? " at" : "")} onPointerEnter={() => setAt(i)} onClick={p.onBrush ? undefined : () => p.onStep(bar.row)}>
              <rect x={LEFT + i * width} y={0} width={width} height={HEIGHT + 18} class={isChosen(bar, i) ? "chosen" : "free"} />
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
              <a key={phase} href={hash({ page: "timeline", params: { phase } })} title={`show ${PHASE_TITLES[phase]} in the timeline`}>
                <i style={{ background: PHASE_COLOURS[phase] }} />
                {PHASE_TITLES[phase]}
              </a>
            ))}
            {!used.length && "the phases of the steps are not known · "}click a step to see it in the timeline{p.onBrush ? "; drag over several to see only them on all pages" : ""}
          </span>
        )}
      </figcaption>
    </figure>
  );
}
