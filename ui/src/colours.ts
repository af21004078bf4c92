// colours.ts: phases have fixed colours everywhere, from a palette that is safe for colour-blind eyes (Okabe and Ito). An
// op gets a shade of its phase's colour by its type; events without a phase get muted colours by type.

/** Phases in the order of the model's enum; the server lists them, too (Rows.phases), and a test compares both. */
export const PHASES = ["unknown", "input", "host", "launch", "host_to_device", "compute", "device_to_host", "communication", "synchronisation", "idle", "allocation", "initialisation"];
export const PHASE_TITLES: Record<string, string> = {
  unknown: "not known",
  input: "input",
  host: "host",
  launch: "launch",
  host_to_device: "copy to device",
  compute: "compute",
  device_to_host: "copy to host",
  communication: "communication",
  synchronisation: "wait",
  run_queue: "wait for a processor",
  idle: "idle",
  allocation: "allocation",
  initialisation: "initialisation",
};
export const PHASE_COLOURS: Record<string, string> = {
  unknown: "#8a919b",
  input: "#e69f00",
  host: "#56b4e9",
  launch: "#d9c727",
  host_to_device: "#009e73",
  compute: "#3b7dc4",
  device_to_host: "#6fc3a4",
  communication: "#cc79a7",
  synchronisation: "#d55e00",
  run_queue: "#f4978e",
  idle: "#b4b8be",
  allocation: "#a6761d",
  initialisation: "#7b6ca8",
};

export type Rgb = [number, number, number];

export function parse(hex: string): Rgb {
  const text = hex.trim().replace("#", "");
  const full = text.length === 3 ? [...text].map((c) => c + c).join("") : text;
  return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16)) as Rgb;
}

function mix(a: Rgb, b: Rgb, part: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * part)) as Rgb;
}

function hue(degrees: number): Rgb {
  const channel = (offset: number) => {
    const k = (offset + degrees / 30) % 12;
    return Math.round(255 * (0.66 - 0.11 * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/** The 256 tints of a tile: the phase in the upper four bits, a shade in the lower four. */
export const TINTS: Rgb[] = Array.from({ length: 256 }, (_, tint) => {
  const phase = PHASES[tint >> 4] ?? "unknown";
  const shade = tint & 15;
  if (phase === "unknown") return hue(shade * 22.5);
  const base = parse(PHASE_COLOURS[phase]);
  return shade < 8 ? mix(base, [255, 255, 255], shade * 0.045) : mix(base, [0, 0, 0], (shade - 8) * 0.025);
});

export const css = (c: Rgb) => `rgb(${c[0]},${c[1]},${c[2]})`;
export const isLight = (c: Rgb) => 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 140;
