// flamecanvas.tsx: a flame graph that scrolls, zooms by click and shows details of the box under the pointer. The
// canvas is as high as the visible part, not as the graph: a graph of a thousand frames would take 100 MB of pixels.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, param } from "../address";
import { release, sized } from "../timeline/draw";
import * as flame from "./flame";

/** The node that the address zooms to: a path of child numbers, which survives a reload. */
export const useFocus = (root: flame.Node): flame.Node =>
  useMemo(() => {
    let at = root;
    for (const step of param("at") ? param("at").split(".") : []) at = at.children[Number(step)] ?? at;
    return at;
  }, [root, param("at")]);

const pathOf = (node: flame.Node) => {
  const path: number[] = [];
  for (let at: flame.Node = node; at.parent; at = at.parent) path.unshift(at.parent.children.indexOf(at));
  return path.join(".");
};

export interface FlameCanvasProps {
  focus: flame.Node;
  label: string;
  onHover: (node: flame.Node | null) => void;
  /** Called for a click or Enter, instead of zooming. */
  onPick?: (node: flame.Node) => void;
  /** Draw the root at the bottom. */
  up?: boolean;
  matches?: ((name: string) => boolean) | null;
  colourOf?: (node: flame.Node) => string;
}

export function FlameCanvas(p: FlameCanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 900, height: 100 });
  const [top, setTop] = useState(0);
  const [hover, setHover] = useState<flame.Node | null>(null);
  const { boxes, rows } = useMemo(() => flame.layout(p.focus, size.width), [p.focus, size.width]);
  const height = rows * flame.BOX;
  const up = p.up === true;

  useEffect(() => {
    const element = box.current;
    const pixels = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: Math.max(200, element.clientWidth), height: element.clientHeight }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      release(pixels);
    };
  }, []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = up ? box.current.scrollHeight : 0; // scrolls to the root
  }, [up, p.focus]);
  const shown = Math.min(height, size.height);
  useEffect(() => {
    const g = canvas.current?.getContext("2d");
    if (!canvas.current || !g) return;
    const ratio = window.devicePixelRatio || 1;
    sized(canvas.current, size.width * ratio, shown * ratio);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, size.width, shown);
    g.translate(0, -top);
    const style = getComputedStyle(canvas.current);
    const colours = { text: style.getPropertyValue("--text"), background: style.getPropertyValue("--canvas"), dim: style.getPropertyValue("--line") };
    const inSight = boxes.filter((b) => {
      const y = up ? height - b.y - flame.BOX : b.y;
      return y + flame.BOX > top && y < top + shown;
    });
    flame.paint(g, inSight, height, up, p.matches ?? null, colours, hover, p.colourOf);
  });
  const find = (e: MouseEvent) => {
    const scrolled = box.current?.scrollTop ?? 0; // read now: the last drawing may be from before a scroll
    const y = up ? height - e.offsetY - scrolled : e.offsetY + scrolled;
    return boxes.find((b) => y >= b.y && y < b.y + flame.BOX && e.offsetX >= b.x && e.offsetX < b.x + b.width)?.node ?? null;
  };
  const point = (node: flame.Node | null) => {
    setHover(node);
    p.onHover(node);
  };
  const pick = (node: flame.Node) => (p.onPick ? p.onPick(node) : change({ at: pathOf(node) }));
  /** Arrow keys move to callers, callees and neighbours, as far as they are drawn. */
  const onKey = (e: KeyboardEvent) => {
    const at = hover ?? p.focus;
    const drawn = (node: flame.Node | null | undefined) => (node && boxes.some((b) => b.node === node) ? node : null);
    const siblings = (at.parent?.children ?? []).filter((node) => drawn(node));
    const i = siblings.indexOf(at);
    const to = e.key === (up ? "ArrowDown" : "ArrowUp") ? drawn(at.parent) : e.key === (up ? "ArrowUp" : "ArrowDown") ? at.children.find((node) => drawn(node)) : e.key === "ArrowLeft" ? siblings[i - 1] : e.key === "ArrowRight" ? siblings[i + 1] : undefined;
    if (e.key.startsWith("Arrow")) {
      const next = to ?? at;
      point(next);
      const y = boxes.find((b) => b.node === next)?.y;
      if (y !== undefined && box.current) {
        const top = up ? height - y - flame.BOX : y;
        if (top < box.current.scrollTop) box.current.scrollTop = top;
        else if (top + flame.BOX > box.current.scrollTop + box.current.clientHeight) box.current.scrollTop = top + flame.BOX - box.current.clientHeight;
      }
    } else if (e.key === "Enter" && hover) pick(hover);
    else if (e.key === "Escape" || e.key === "Backspace") change({ at: p.focus.parent ? pathOf(p.focus.parent) : "" });
    else return;
    e.preventDefault();
  };
  return (
    <div class="flame" ref={box} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
      <div style={{ height: height + "px" }}>
        <canvas ref={canvas} style={{ height: shown + "px" }} role="application" tabIndex={0} onKeyDown={onKey} aria-label={p.label + "; arrows move, Enter zooms, Escape goes back"} onPointerMove={(e) => point(find(e))} onPointerLeave={() => point(null)} onClick={(e) => {
          const hit = find(e);
          if (hit) pick(hit);
        }} />
      </div>
    </div>
  );
}
