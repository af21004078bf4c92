// folded.tsx: lays steps over each other: one track, a line per step, all from the same start. The step nearest to the
// median is the first line; what grew compared with it is written beside each slow step. A click shows the step in the
// timeline.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, param } from "../address";
import { PHASE_TITLES } from "../colours";
import * as format from "../format";
import { Empty } from "../parts/panel";
import { median } from "../parts/steps";
import { Painter, axisStep, axisTime, levelFor, readPalette, sized, tilesOf } from "./draw";
import type { Layout } from "./layout";
import type { Step, Store } from "./store";

const LINES_MOST = 40;
const LINE = 22;

/** The phase in which a step took most above the median of all steps, as text. */
export function grew(step: Step, all: Step[]): string {
  const phases = new Set(all.flatMap((s) => s.phases.map(([phase]) => phase)));
  let best = "";
  let most = 0;
  for (const phase of phases) {
    const of = (s: Step) => s.phases.find(([p]) => p === phase)?.[1] ?? 0;
    const more = of(step) - median(all.map(of).sort((a, b) => a - b));
    if (more > most) [best, most] = [phase, more];
  }
  return best ? `+${format.time(most)} ${PHASE_TITLES[best] ?? best}` : "";
}

export function FoldedSteps(p: { store: Store; layout: Layout }) {
  const tracks = p.layout.blocks.filter((b) => b.kind === "track" && b.lines[0]?.rows[0].kind === "events");
  const track = tracks.find((b) => b.key === param("track")) ?? tracks[0];
  const row = track?.lines[0]?.rows[0];
  const rank = track?.track && track.track.rank >= 0 ? track.track.rank : null;
  const steps = useMemo(() => p.store.steps.filter((s) => s.rank === null || rank === null || s.rank === rank), [p.store.steps, rank]);
  const middle = steps.length ? median(steps.map((s) => s.end - s.start).sort((a, b) => a - b)) : 0;
  const reference = steps.reduce((a: Step | null, b) => (!a || Math.abs(b.end - b.start - middle) < Math.abs(a.end - a.start - middle) ? b : a), null);
  const shown = useMemo(() => {
    const others = steps.filter((s) => s !== reference);
    const chosen = others.length < LINES_MOST ? others : [...others].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, LINES_MOST - 1);
    return reference ? [reference, ...chosen.sort((a, b) => a.start - b.start)] : chosen;
  }, [steps, reference]);
  const longest = Math.max(1, ...shown.map((s) => s.end - s.start));
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useMemo(() => new Painter(), []);
  const [width, setWidth] = useState(600);
  useEffect(() => () => painter.release(), []);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(100, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [row]);
  useEffect(() => {
    if (!row) return;
    const paint = () => {
      const g = canvas.current?.getContext("2d");
      if (!canvas.current || !g) return;
      const ratio = window.devicePixelRatio || 1;
      sized(canvas.current, width * ratio, (shown.length * LINE + 18) * ratio);
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      const palette = readPalette(canvas.current);
      painter.paintFolded(g, p.store, row, shown.map((s) => ({ from: s.start, to: s.start + longest, end: s.end })), width, LINE, palette);
      g.fillStyle = palette.faint;
      g.font = "11px system-ui, sans-serif";
      const step = axisStep({ from: 0, to: longest }, width / 110);
      for (let t = 0; t <= longest; t += step) g.fillText(axisTime(t, step), (t / longest) * width + 2, shown.length * LINE + 13);
    };
    const before = p.store.onNews;
    p.store.onNews = paint;
    const { buckets, top_level } = p.store.rows;
    const keys: [number, number, number][] = [[row.row, top_level, 0]];
    for (const s of shown) {
      const range = { from: Math.max(0, s.start), to: s.start + longest };
      const level = Math.min(levelFor(range, width), top_level);
      for (const index of tilesOf(range, level, buckets)) keys.push([row.row, level, index]);
    }
    p.store.want(keys);
    paint();
    return () => {
      p.store.onNews = before;
    };
  }, [row, shown, width, longest]);

  if (!row) return <Empty>There is no track with events to lay over each other.</Empty>;
  if (shown.length < 2) return <Empty>Fewer than two steps are known on this track.</Empty>;
  return (
    <div class="folded">
      <div class="bar">
        <label>
          track{" "}
          <select value={track?.key} onChange={(e) => change({ track: e.currentTarget.value })}>
            {tracks.map((b) => <option key={b.key} value={b.key}>{[b.track?.process, b.title].filter(Boolean).join(" · ")}</option>)}
          </select>
        </label>
        <span class="fact">{steps.length > shown.length ? `the ${shown.length - 1} slowest of ${steps.length} steps` : format.plural(steps.length, "step")}, each from its start; the first line is the step nearest the median</span>
      </div>
      <div class="lines-of-steps">
        <ol>
          {shown.map((s, i) => (
            <li key={s.number + "/" + s.start} class={i === 0 ? "reference" : s.outlier ? "slow" : ""}>
              <button type="button" class="plain" onClick={() => change({ steps: "", t: `${Math.round(s.start - (s.end - s.start) * 0.02)}-${Math.round(s.end + (s.end - s.start) * 0.02)}` })}>
                {i === 0 ? "median: " : ""}step {s.number} · {format.time(s.end - s.start)}
              </button>
              {i > 0 && (s.outlier || s.end - s.start > middle * 1.03) && <small>{grew(s, steps)}</small>}
            </li>
          ))}
        </ol>
        <canvas ref={canvas} style={{ height: shown.length * LINE + 18 + "px" }} role="img" aria-label={`${shown.length} steps of ${track?.title}, laid over each other; the list beside it has their times`} />
      </div>
    </div>
  );
}
