// flame.ts: draws a tree of costs as a flame graph on a canvas. Pure functions build and lay out the tree (inverted,
// left-heavy, zoomed); paint draws boxes that are at least half a pixel wide.
import type { Row } from "../api";
import { TINTS, css, isLight } from "../colours";

export interface Node {
  name: string;
  total: number;
  self: number;
  children: Node[];
  parent: Node | null;
  depth: number;
}

function hash(text: string): number {
  let h = 5381;
  for (let i = 0; i < text.length; i++) h = ((h * 33) ^ text.charCodeAt(i)) >>> 0;
  return h;
}

/** The function's name of a frame without a file. */
const functionName = (name: string) => name.replace(/^:0:(?=.)/, "");

/** Makes the tree of a view: `total` names the column with the cost of a row and everything below it. */
export function fromRows(rows: Row[], total: string): Node {
  const root: Node = { name: "all", total: 0, self: 0, children: [], parent: null, depth: 0 };
  const stack: { row: Row; parent: Node }[] = rows.map((row) => ({ row, parent: root })).reverse();
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { row, parent } = top;
    if (row.name === "_TFProfRoot" || (row.name === "all" && parent === root && rows.length === 1)) {
      for (const child of [...(row.children ?? [])].reverse()) stack.push({ row: child, parent });
      continue;
    }
    const node: Node = { name: functionName(String(row.name ?? "")), total: Math.max(0, Number(row[total]) || 0), self: 0, children: [], parent, depth: parent.depth + 1 };
    if (node.total <= 0) continue;
    parent.children.push(node);
    for (const child of [...(row.children ?? [])].reverse()) stack.push({ row: child, parent: node });
  }
  settle(root);
  return root;
}

/** Computes own costs, and raises totals that are below the sum of their children. */
function settle(root: Node) {
  const order: Node[] = [root];
  for (let i = 0; i < order.length; i++) order.push(...order[i].children);
  for (const node of order.reverse()) {
    const below = node.children.reduce((sum, child) => sum + child.total, 0);
    if (node.total < below) node.total = below;
    node.self = node.total - below > node.total * 1e-9 ? node.total - below : 0; // sums of real numbers are not exact
  }
}

function childNamed(parent: Node, name: string, index: Map<Node, Map<string, Node>>): Node {
  let names = index.get(parent);
  if (!names) index.set(parent, (names = new Map()));
  let child = names.get(name);
  if (!child) {
    child = { name, total: 0, self: 0, children: [], parent, depth: parent.depth + 1 };
    names.set(name, child);
    parent.children.push(child);
  }
  return child;
}

/** Inverts the tree, callees first: each own cost is added to the path from the function to its outermost caller. */
export function invert(root: Node): Node {
  const out: Node = { name: "all", total: 0, self: 0, children: [], parent: null, depth: 0 };
  const index = new Map<Node, Map<string, Node>>();
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    stack.push(...node.children);
    if (node.self <= 0 || node === root) continue;
    let at = out;
    out.total += node.self;
    for (let from: Node | null = node; from && from !== root; from = from.parent) {
      at = childNamed(at, from.name, index);
      at.total += node.self;
    }
  }
  settle(out);
  return out;
}

/** Merges all nodes of one name with the functions that they call. Callers are a separate tree. */
export function mergeNamed(root: Node, name: string): Node {
  const out: Node = { name: "all", total: 0, self: 0, children: [], parent: null, depth: 0 };
  const index = new Map<Node, Map<string, Node>>();
  const inside = (node: Node) => {
    for (let from = node.parent; from; from = from.parent) if (from.name === name) return true;
    return false;
  };
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    stack.push(...node.children);
    if (node.name !== name || inside(node)) continue; // recursion counts once
    const copies: [Node, Node][] = [[node, out]];
    for (let pair = copies.pop(); pair; pair = copies.pop()) {
      const to = childNamed(pair[1], pair[0].name, index);
      to.total += pair[0].total;
      for (const child of pair[0].children) copies.push([child, to]);
    }
  }
  settle(out);
  return out;
}

/** The name of a function without parts that only some views write: parameters, "L…;" and ":" of Java, file and line. */
const bareName = (name: string) => name.replace(/^[^/\s:]*:\d+:/, "").replace(/^L(?=[\w$]+\/)/, "").replace(/[;:]\./, ".").replace(/\(.*\)( const)?$/, "");

/** The name of the costliest node that is the function `wanted`, as this tree writes it; "" if there is none. */
export function nameIn(root: Node, wanted: string): string {
  if (!wanted) return "";
  const bare = bareName(wanted);
  let best: Node | null = null;
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (node.name === wanted && node !== root) return wanted;
    stack.push(...node.children);
    if (bareName(node.name) === bare && (!best || node.total > best.total)) best = node;
  }
  return best?.name ?? wanted;
}

/** A tree of everything that calls a name, from it outwards: the upper half of a sandwich. */
export function callersOf(root: Node, name: string): Node {
  const out: Node = { name: "all", total: 0, self: 0, children: [], parent: null, depth: 0 };
  const index = new Map<Node, Map<string, Node>>();
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (node.name === name && node !== root) {
      let at = out;
      for (let from: Node | null = node; from && from !== root; from = from.parent) {
        at = childNamed(at, from.name, index);
        at.total += node.total;
      }
      continue; // recursion counts once
    }
    stack.push(...node.children);
  }
  settle(out);
  return out;
}

/** Makes one box of a function that calls itself, directly or through others: the inner call is added to the outer
 * one. */
export function collapse(root: Node): Node {
  const out: Node = { name: root.name, total: 0, self: 0, children: [], parent: null, depth: 0 };
  const index = new Map<Node, Map<string, Node>>();
  const stack: [Node, Node][] = root.children.map((child) => [child, out]);
  for (let pair = stack.pop(); pair; pair = stack.pop()) {
    const [node, parent] = pair;
    let to: Node | null = parent;
    while (to && to !== out && to.name !== node.name) to = to.parent;
    const at = to && to !== out ? to : childNamed(parent, node.name, index);
    for (let up: Node | null = at; up; up = up.parent) up.total += node.self;
    for (const child of node.children) stack.push([child, at]);
  }
  settle(out);
  return out;
}

/** Removes the subtrees of some names (drop), and adds the own cost of others to their callers (merge). */
export function without(root: Node, drop: Set<string>, merge: Set<string>): Node {
  const out: Node = { name: root.name, total: 0, self: 0, children: [], parent: null, depth: 0 };
  const index = new Map<Node, Map<string, Node>>();
  const stack: [Node, Node][] = root.children.map((child) => [child, out]);
  for (let pair = stack.pop(); pair; pair = stack.pop()) {
    const [node, parent] = pair;
    if (drop.has(node.name)) continue;
    const at = merge.has(node.name) ? parent : childNamed(parent, node.name, index);
    for (let up: Node | null = at; up; up = up.parent) up.total += node.self;
    for (const child of node.children) stack.push([child, at]);
  }
  settle(out);
  return out;
}

/** Sorts by name, so that the same function is at the same place in two graphs. */
export function sortNames(root: Node) {
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    node.children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    stack.push(...node.children);
  }
}

export function sortHeavy(root: Node) {
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    node.children.sort((a, b) => b.total - a.total);
    stack.push(...node.children);
  }
}

/** Costs by name below a node: own, and total without counting recursion twice. */
export function byName(root: Node): Row[] {
  const rows = new Map<string, { self: number; total: number }>();
  const open = new Map<string, number>();
  const stack: { node: Node; leave: boolean }[] = (root.parent ? [root] : root.children).map((node) => ({ node, leave: false }));
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { node, leave } = top;
    const depth = open.get(node.name) ?? 0;
    if (leave) {
      open.set(node.name, depth - 1);
      continue;
    }
    const sum = rows.get(node.name) ?? { self: 0, total: 0 };
    sum.self += node.self;
    if (depth === 0) sum.total += node.total;
    rows.set(node.name, sum);
    open.set(node.name, depth + 1);
    stack.push({ node, leave: true });
    for (const child of node.children) stack.push({ node: child, leave: false });
  }
  return [...rows].map(([name, sum]) => ({ name, self: sum.self, total: sum.total, percent: root.total ? (100 * sum.self) / root.total : 0 }) as Row).sort((a, b) => Number(b.self) - Number(a.self));
}

export interface Box {
  node: Node;
  x: number;
  width: number;
  y: number;
}

export const BOX = 19;

/** Lays out the boxes of a node and everything below it; its callers are full rows on top. */
export function layout(focus: Node, width: number): { boxes: Box[]; rows: number } {
  const boxes: Box[] = [];
  const chain: Node[] = [];
  for (let at = focus.parent; at; at = at.parent) chain.unshift(at);
  chain.forEach((node, i) => boxes.push({ node, x: 0, width, y: i * BOX }));
  let rows = chain.length;
  const stack: Box[] = [{ node: focus, x: 0, width, y: chain.length * BOX }];
  for (let box = stack.pop(); box; box = stack.pop()) {
    boxes.push(box);
    rows = Math.max(rows, box.y / BOX + 1);
    let x = box.x;
    for (const child of box.node.children) {
      const w = (child.total / Math.max(1e-9, box.node.total)) * box.width;
      if (w >= 0.5) stack.push({ node: child, x, width: w, y: box.y + BOX });
      x += w;
    }
  }
  return { boxes, rows };
}

/** A frame of a comparison: as wide as in the new runs, coloured by the difference. */
export interface DiffNode extends Node {
  row: Row;
}

/** Makes the tree of `opwatch diff --frames`; frames that only the base has would have no width and are left out. */
export function fromFrames(rows: Row[]): DiffNode {
  const make = (row: Row, parent: DiffNode | null): DiffNode => ({ name: String(row.name ?? ""), total: Math.max(0, Number(row.new_ns) || 0), self: Number(row.new_self_ns) || 0, children: [], parent, depth: parent ? parent.depth + 1 : 0, row });
  const root = make(rows[0] ?? ({ name: "all", new_ns: 0 } as Row), null);
  const stack: DiffNode[] = [root];
  for (let node = stack.pop(); node; node = stack.pop())
    for (const row of node.row.children ?? []) {
      const child = make(row, node);
      if (child.total <= 0) continue;
      node.children.push(child);
      stack.push(child);
    }
  return root;
}

/** The largest difference of a frame below the root. */
export function mostDifferent(root: DiffNode): number {
  let most = 0;
  const stack: Row[] = [...(root.row.children ?? [])];
  for (let row = stack.pop(); row; row = stack.pop()) {
    most = Math.max(most, Math.abs(Number(row.delta_ns) || 0));
    stack.push(...(row.children ?? []));
  }
  return most;
}

const REDS = ["#e6e6e6", "#fde0d6", "#fcc5b3", "#fba78f", "#f9866b", "#f4664a", "#ea4a2f"];
const BLUES = ["#e6e6e6", "#dbe8f6", "#bed7ee", "#9dc4e4", "#7bafd9", "#5c9acd", "#4187c0"];

/** The colour of a difference: red for more, blue for less; the darker, the nearer to the largest difference. The
 * same as in the SVG. */
export function diffColour(delta: number, most: number): string {
  const part = most > 0 ? Math.abs(delta) / most : 0;
  return (delta > 0 ? REDS : BLUES)[part < 0.01 ? 0 : Math.min(6, Math.ceil(part * 6))];
}

export function paint(g: CanvasRenderingContext2D, boxes: Box[], height: number, flip: boolean, matches: ((name: string) => boolean) | null, colours: { text: string; background: string; dim: string }, at: Node | null, colourOf?: (node: Node) => string) {
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  for (const box of boxes) {
    const y = flip ? height - box.y - BOX : box.y;
    const tint = TINTS[hash(box.node.name.replace(/:\d+/g, "")) & 15];
    const on = !matches || matches(box.node.name);
    g.fillStyle = on && colourOf ? colourOf(box.node) : box.node.parent === null ? colours.dim : on ? css(tint) : colours.dim;
    g.fillRect(box.x, y, Math.max(0.5, box.width - 0.5), BOX - 1);
    if (box.node === at) {
      g.strokeStyle = colours.text;
      g.strokeRect(box.x + 0.5, y + 0.5, Math.max(1, box.width - 1.5), BOX - 2);
    }
    const room = Math.floor((box.width - 8) / 6.1);
    if (room < 2) continue;
    const name = box.node.name;
    g.fillStyle = on && colourOf ? "#10151c" : box.node.parent === null || !on ? colours.text : isLight(tint) ? "#10151c" : "#ffffff";
    g.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, box.x + 4, y + BOX / 2, box.width - 6);
  }
}
