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
  onClick?: (x: number) => void;
  label: string;
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
          hooks: { setCursor: [(u) => latest.current.onCursor?.(u.cursor.idx ?? null)] },
        },
        [p.x, ...p.series.map((s) => s.values)] as uPlot.AlignedData,
        element,
      );
      plot.current.over.addEventListener("click", () => {
        const i = plot.current?.cursor.idx;
        if (i !== null && i !== undefined) latest.current.onClick?.(latest.current.x[i]);
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
  return <div class="chart" ref={box} role="img" aria-label={p.label} />;
}
