// roofline.tsx: the page Roofline: how far operations are from the limits of the device, on two logarithmic axes. The
// user can give the peaks; the table has the same points.
import { useMemo, useRef, useState } from "preact/hooks";
import { change, param } from "../address";
import { inReport, type Row, type Table as TableData } from "../api";
import * as format from "../format";
import { useAnswer } from "../load";
import { Empty, Failure, Panel, Waiting, command } from "../parts/panel";
import { optionWords, View } from "../parts/view";

const W = 760;
const H = 380;
const LEFT = 64;
const BOTTOM = 36;
const RIGHT = 32;

export function RooflinePage() {
  const params = param("peak") ? { peak: param("peak") } : {};
  const roof = useAnswer<TableData>("/api/view", { name: "roofline", ...params });
  const [peak, setPeak] = useState(param("peak"));
  return (
    <div class="page">
      <form class="bar" hidden={inReport()} onSubmit={(e) => {
        e.preventDefault();
        change({ peak });
      }}>
        <label>peak of the device <input value={peak} placeholder="from the file; A100, or 312T:2.04T" onInput={(e) => setPeak(e.currentTarget.value)} style={{ width: "240px" }} /></label>
        <button type="submit">apply</button>
      </form>
      {roof.error ? <Failure text={roof.error} /> : !roof.value ? <Waiting /> : !roof.value.rows.length ? <Panel title="Roofline"><Empty page="roofline">{roof.value.footer ?? "No operation has float operations or bytes."}</Empty></Panel> : (
        <>
          <Panel title="Roofline" copies={{ command: command("roofline", ...optionWords(params)) }}><Plot rows={roof.value.rows} box={boxOf()} onBox={(box) => change({ box: box ? box.map((v) => v.toPrecision(4)).join(",") : "" })} />
            {boxOf() && <button type="button" onClick={() => change({ box: "" })}>show all operations in the table</button>}
          </Panel>
          <View view="roofline" params={params} title="Operations" shown={["name", "runs", "time_ns", "percent", "flops", "bytes", "gflops_per_second", "gbytes_per_second", "intensity", "efficiency_percent", "bound_by", "where", "type"]} titles={{ percent: "share", flops: "float ops", gflops_per_second: "GFLOP/s", gbytes_per_second: "GB/s", efficiency_percent: "of the roof", intensity: "per byte" }} bar="time_ns" height={16} empty="" keep={(row) => isIn(row, boxOf())} keepKey={param("box")} filter={param("q")} onFilter={(q) => change({ q }, true)} />
        </>
      )}
    </div>
  );
}

/** The area that the user dragged: float operations per byte from, to, then 1e9 float operations per second from, to. */
type Box = [number, number, number, number];
function boxOf(): Box | null {
  const parts = param("box").split(",").map(Number);
  return parts.length === 4 && parts.every((v) => v > 0) ? (parts as Box) : null;
}
const isIn = (row: Row, box: Box | null) => !box || (Number(row.intensity) >= box[0] && Number(row.intensity) <= box[1] && Number(row.gflops_per_second) >= box[2] && Number(row.gflops_per_second) <= box[3]);

function Plot(p: { rows: Row[]; box: Box | null; onBox: (box: Box | null) => void }) {
  const [at, setAt] = useState<Row | null>(null);
  const [drag, setDrag] = useState<number[] | null>(null); // x, y of the begin and the present end of the drag
  const drawing = useRef<SVGSVGElement>(null);
  const points = useMemo(() => p.rows.filter((row) => row.type !== "program" && Number(row.intensity) > 0 && Number(row.gflops_per_second) > 0), [p.rows]);
  if (!points.length) return <Empty>No operation has both float operations and bytes, so none can be placed; the table has what is known.</Empty>;
  const peak = Math.max(0, ...points.map((row) => Number(row.peak_gflops_per_second) || 0));
  const bandwidth = Math.max(0, ...points.map((row) => Number(row.peak_gbytes_per_second) || 0));
  const xs = points.map((row) => Number(row.intensity));
  const ys = points.map((row) => Number(row.gflops_per_second));
  const ridge = peak && bandwidth ? peak / bandwidth : 1;
  const [x0, x1] = [Math.floor(Math.log10(Math.min(...xs, ridge))), Math.ceil(Math.log10(Math.max(...xs, ridge)) + 0.01)];
  const [y0, y1] = [Math.floor(Math.log10(Math.min(...ys))), Math.ceil(Math.log10(Math.max(...ys, peak || 1)) + 0.01)];
  const toX = (v: number) => LEFT + ((Math.log10(v) - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
  const toY = (v: number) => H - BOTTOM - ((Math.log10(v) - y0) / (y1 - y0)) * (H - BOTTOM - 12);
  const most = Math.max(...points.map((row) => Number(row.time_ns) || 0), 1);
  const ticks = (a: number, b: number) => Array.from({ length: b - a + 1 }, (_, i) => a + i);
  const fromX = (x: number) => 10 ** (x0 + ((x - LEFT) / (W - LEFT - RIGHT)) * (x1 - x0));
  const fromY = (y: number) => 10 ** (y0 + ((H - BOTTOM - y) / (H - BOTTOM - 12)) * (y1 - y0));
  const place = (e: PointerEvent): [number, number] => {
    const box = drawing.current?.getBoundingClientRect();
    return box ? [((e.clientX - box.left) / box.width) * W, ((e.clientY - box.top) / box.height) * H] : [0, 0];
  };
  const shown = drag ?? (p.box && [toX(p.box[0]), toY(p.box[2]), toX(p.box[1]), toY(p.box[3])]);
  return (
    <figure class="roof">
      <svg ref={drawing} viewBox={`0 0 ${W} ${H}`} role="img" aria-label="roofline; the table below has every point" onPointerDown={(e) => {
        e.currentTarget.setPointerCapture(e.pointerId);
        setDrag([...place(e), ...place(e)]);
      }} onPointerMove={(e) => drag && setDrag([drag[0], drag[1], ...place(e)])} onPointerUp={(e) => {
        if (drag) {
          const [x, y] = place(e);
          const far = Math.abs(x - drag[0]) > 6 && Math.abs(y - drag[1]) > 6;
          p.onBox(far ? [fromX(Math.min(x, drag[0])), fromX(Math.max(x, drag[0])), fromY(Math.max(y, drag[1])), fromY(Math.min(y, drag[1]))] : null);
        }
        setDrag(null);
      }}>
        {ticks(x0, x1).map((t) => <g key={t}><line class="grid" x1={toX(10 ** t)} x2={toX(10 ** t)} y1={12} y2={H - BOTTOM} /><text class="axis middle" x={toX(10 ** t)} y={H - BOTTOM + 14}>{format.count(10 ** t)}</text></g>)}
        {ticks(y0, y1).map((t) => <g key={t}><line class="grid" x1={LEFT} x2={W - RIGHT} y1={toY(10 ** t)} y2={toY(10 ** t)} /><text class="axis end" x={LEFT - 6} y={toY(10 ** t) + 4}>{format.count(10 ** t * 1e9)}</text></g>)}
        <text class="axis end" x={W - RIGHT} y={H - 6}>float operations per byte</text>
        <text class="axis" x={LEFT + 4} y={22}>float operations per second</text>
        {peak > 0 && bandwidth > 0 && <polyline class="roofline" points={`${toX(10 ** x0)},${toY(Math.max(10 ** y0, bandwidth * 10 ** x0))} ${toX(ridge)},${toY(peak)} ${toX(10 ** x1)},${toY(peak)}`} />}
        {shown && <rect class="lasso" x={Math.min(shown[0], shown[2])} y={Math.min(shown[1], shown[3])} width={Math.abs(shown[2] - shown[0])} height={Math.abs(shown[3] - shown[1])} />}
        {points.map((row, i) => <circle key={i} cx={toX(Number(row.intensity))} cy={toY(Number(row.gflops_per_second))} r={3 + 9 * Math.sqrt((Number(row.time_ns) || 0) / most)} class={"point " + String(row.bound_by ?? "") + (isIn(row, p.box) ? "" : " out")} onPointerEnter={() => setAt(row)} onPointerLeave={() => setAt(null)} />)}
      </svg>
      <figcaption>{at ? `${at.name}: ${format.time(Number(at.time_ns))}, ${format.count(Number(at.gflops_per_second) * 1e9)} float operations per second${at.efficiency_percent !== null ? `, ${format.percent(Number(at.efficiency_percent))} of what is attainable` : ""}` : "the size of a point is its time; drag a box around points to see only them in the table" + (peak ? "" : "; the peak of the device is not known: give one above")}</figcaption>
    </figure>
  );
}
