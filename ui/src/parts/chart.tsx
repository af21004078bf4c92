// chart.tsx: a line chart over time (uPlot). The panel around it has a table of the same values.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface ChartProps {
  x: number[];
  series: { title: string; values: (number | null)[]; colour: string }[];
  formatX: (value: number) => string;
  formatY: (value: number) => string;
  height?: number;
  onCursor?: (index: number | null) => void;
  /** Called for a click anywhere: the exact value below the pointer, and whether Shift was held. */
  onClick?: (x: number, shift: boolean) => void;
  /** Called for arrow keys: the index of the point to go to, starting at `at`. */
  onKey?: (index: number, shift: boolean) => void;
  /** Vertical lines with titles. */
  marks?: { x: number; title: string }[];
  label: string;
}

function drawMarks(u: uPlot, marks: { x: number; title: string }[], colour: string) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.lineWidth = devicePixelRatio;
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.x, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width + 1) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const left = x + ctx.measureText(mark.title).width + 8 * devicePixelRatio > bbox.left + bbox.width;
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(mark.title, x + (left ? -4 : 4) * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
  }
  ctx.restore();
}

export function Chart(p: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(p);
  latest.current = p;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const make = () => {
      const style = getComputedStyle(element);
      const colour = (name: string) => style.getPropertyValue(name).trim();
      const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
      plot.current?.destroy();
      plot.current = new uPlot(
        {
          width: Math.max(200, element.clientWidth),
          height: p.height ?? 220,
          legend: { show: false },
          scales: { x: { time: false } },
          axes: [
            { ...axis, values: (_, values) => values.map((v) => latest.current.formatX(v)) },
            { ...axis, size: 72, values: (_, values) => values.map((v) => latest.current.formatY(v)) },
          ],
          series: [{}, ...p.series.map((s) => ({ label: s.title, stroke: s.colour, width: 1.5, fill: p.series.length === 1 ? s.colour + "22" : undefined, points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }) }))],
          cursor: { drag: { x: true, y: false } },
          hooks: { setCursor: [(u) => latest.current.onCursor?.(u.cursor.idx ?? null)], draw: [(u) => drawMarks(u, latest.current.marks ?? [], colour("--accent"))] },
        },
        [p.x, ...p.series.map((s) => s.values)] as uPlot.AlignedData,
        element,
      );
      const over = plot.current.over;
      let down = 0;
      over.addEventListener("mousedown", (e) => (down = e.clientX));
      over.addEventListener("click", (e) => {
        if (plot.current && Math.abs(e.clientX - down) < 4) latest.current.onClick?.(Math.round(plot.current.posToVal(e.clientX - over.getBoundingClientRect().left, "x")), e.shiftKey);
      });
    };
    make();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: p.height ?? 220 }));
    observer.observe(element);
    window.addEventListener("resize", make);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", make);
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [p.x, p.series.length]);
  const marks = JSON.stringify(p.marks ?? []);
  useEffect(() => plot.current?.redraw(false), [marks]);
  const onKey = (e: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -p.x.length, End: p.x.length };
    if (!(e.key in moves) || !p.onKey) return;
    const mark = e.shiftKey && p.marks && p.marks.length > 1 ? p.marks[0] : p.marks?.[p.marks.length - 1];
    let from = mark ? p.x.findIndex((x) => x >= mark.x) : 0;
    if (from < 0) from = p.x.length - 1;
    p.onKey(Math.max(0, Math.min(p.x.length - 1, from + moves[e.key])), e.shiftKey);
    e.preventDefault();
  };
  return <div class="chart" ref={box} role={p.onKey ? "application" : "img"} tabIndex={p.onKey ? 0 : undefined} aria-label={p.label} onKeyDown={onKey} />;
}
