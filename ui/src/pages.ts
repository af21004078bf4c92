// pages.ts: the pages, in the order of the list at the left. A page that is not finished is not here.
import type { ComponentType } from "preact";
import { AdvicePage } from "./pages/advice";
import { CodePage } from "./pages/code";
import { ComparePage } from "./pages/compare";
import { FilesPage } from "./pages/files";
import { FlamePage } from "./pages/flame";
import { GraphPage } from "./pages/graph";
import { InputPage } from "./pages/input";
import { JobsPage } from "./pages/jobs";
import { MemoryPage } from "./pages/memory";
import { OpsPage } from "./pages/ops";
import { RanksPage } from "./pages/ranks";
import { RooflinePage } from "./pages/roofline";
import { SqlPage } from "./pages/sql";
import { StartPage } from "./pages/start";
import { TimelinePage } from "./pages/timeline";

export interface Page {
  name: string;
  title: string;
  Component: ComponentType;
  inReport: boolean;
}

export const PAGES: Page[] = [
  { name: "start", title: "Start", Component: StartPage, inReport: true },
  { name: "advice", title: "Advice", Component: AdvicePage, inReport: true },
  { name: "timeline", title: "Timeline", Component: TimelinePage, inReport: true },
  { name: "ops", title: "Ops", Component: OpsPage, inReport: true },
  { name: "flame", title: "Flame", Component: FlamePage, inReport: true },
  { name: "code", title: "Code", Component: CodePage, inReport: false },
  { name: "graph", title: "Graph", Component: GraphPage, inReport: false },
  { name: "memory", title: "Memory", Component: MemoryPage, inReport: true },
  { name: "input", title: "Input", Component: InputPage, inReport: true },
  { name: "roofline", title: "Roofline", Component: RooflinePage, inReport: true },
  { name: "ranks", title: "Ranks", Component: RanksPage, inReport: false },
  { name: "compare", title: "Compare", Component: ComparePage, inReport: true },
  { name: "sql", title: "SQL", Component: SqlPage, inReport: false },
  { name: "jobs", title: "Jobs", Component: JobsPage, inReport: false },
  { name: "files", title: "Files", Component: FilesPage, inReport: true },
];

export const pageOf = (name: string) => PAGES.find((page) => page.name === name) ?? PAGES[0];
