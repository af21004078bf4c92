// bars.tsx: a small bar chart: histograms, values per step, results of SQL. Each bar shows its exact value; arrow keys
// move from one to the next. The panel around it has the table.
import { useState } from "preact/hooks";

const WIDTH = 640;
const HEIGHT = 120;
const LEFT = 60;

export interface Bar {
  label: string;
  value: number;
  title: string;
}

export function Bars(p: { label: string; bars: Bar[]; value: (n: number) => string; onOpen?: (index: number) => void }) {
  const [at, setAt] = useState(-1);
  const most = Math.max(...p.bars.map((bar) => bar.value), 0);
  const least = Math.min(...p.bars.map((bar) => bar.value), 0);
  const span = most - least || 1;
  const width = (WIDTH - LEFT) / Math.max(1, p.bars.length);
  const toY = (v: number) => 8 + ((most - v) / span) * (HEIGHT - 12);
  const every = Math.max(1, Math.ceil(Math.max(...p.bars.map((bar) => Math.min(12, bar.label.length)), 1) * 6.4 / width));
  const onKey = (e: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -p.bars.length, End: p.bars.length };
    if (e.key in moves) setAt(Math.max(0, Math.min(p.bars.length - 1, at + moves[e.key])));
    else if (e.key === "Enter" && at >= 0) p.onOpen?.(at);
    else return;
    e.preventDefault();
  };
  return (
    <figure class="steps bars">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 18}`} role="application" tabindex={0} aria-label={`${p.label}: ${p.bars.length} bars, the highest ${p.value(most)}; arrows say each`} onKeyDown={onKey} onPointerLeave={() => setAt(-1)}>
        {[least, least + span / 2, most].map((v, i) => (
          <g key={i}>
            <line class="grid" x1={LEFT} x2={WIDTH} y1={toY(v)} y2={toY(v)} />
            <text class="axis end" x={LEFT - 4} y={toY(v) + 4}>{p.value(v)}</text>
          </g>
        ))}
        {p.bars.map((bar, i) => (
          <g key={i} class={i === at ? "at" : ""} onPointerEnter={() => setAt(i)} onClick={() => p.onOpen?.(i)}>
            <rect x={LEFT + i * width} y={0} width={width} height={HEIGHT + 18} class="free" />
            <rect class="value" x={LEFT + i * width + Math.min(1, width * 0.1)} y={Math.min(toY(bar.value), toY(0))} width={Math.max(0.6, Math.min(48, width - Math.min(2, width * 0.2)))} height={Math.max(0.6, Math.abs(toY(0) - toY(bar.value)))} />
            {i % every === 0 && <text class="axis" x={LEFT + i * width + 2} y={HEIGHT + 13}>{bar.label.length > 12 ? bar.label.slice(0, 11) + "…" : bar.label}</text>}
          </g>
        ))}
      </svg>
      <figcaption aria-live="polite">{p.bars[at]?.title ?? ""}</figcaption>
    </figure>
  );
}
