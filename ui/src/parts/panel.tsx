// panel.tsx: a part of a page: a heading, a content, and at its foot the command that prints the same numbers, with a
// menu that copies it as link, command, SQL, Markdown or CSV.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { inReport } from "../api";
import { link } from "../address";
import { shellWord } from "../format";

/** The files of the command line, for commands to copy. */
export const files = signal<string[]>([]);
/** Files of the run that this one is compared with; empty if there is no comparison. */
export const baseFiles = signal<string[]>([]);
/** Why the files that were chosen on the page Files are not shown; empty when they are. */
export const refused = signal("");
/** The begin of the timeline in nanoseconds since 1970; findings have absolute times. */
export const zero = signal(0);
/** The position on the axis of the timeline from which views count times. */
export const viewStart = signal(0);
export const command = (...words: string[]) => ["opwatch", words[0], ...files.value, ...words.slice(1)].map(shellWord).join(" ");

/** A line at the bottom of the window that disappears after a while. */
export const toast = signal("");
let toastTimer = 0;
export function say(text: string) {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => (toast.value = ""), 2500);
}

export async function copy(text: string, what: string) {
  try {
    await navigator.clipboard.writeText(text);
    say(`copied: ${what}`);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    say(done ? `copied: ${what}` : "the browser does not allow copying here");
  }
}

export interface CopyTexts {
  command?: string;
  sql?: string;
  markdown?: () => string;
  csv?: () => string;
}

export function Panel(p: { title?: string; class?: string; remark?: ComponentChildren; copies?: CopyTexts; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const choices: [string, () => string][] = [];
  if (!inReport()) choices.push(["link", link]);
  if (p.copies?.command) choices.push(["command", () => p.copies?.command ?? ""]);
  if (p.copies?.sql) choices.push(["SQL", () => p.copies?.sql ?? ""]);
  if (p.copies?.markdown) choices.push(["Markdown", p.copies.markdown]);
  if (p.copies?.csv) choices.push(["CSV", p.copies.csv]);
  return (
    <section class={"panel " + (p.class ?? "")}>
      {p.title && (
        <h2>
          {p.title} {p.remark && <small>{p.remark}</small>}
        </h2>
      )}
      {p.children}
      {p.copies && (
        <footer>
          <code title={p.copies.command}>{p.copies.command ?? ""}</code>
          <span class="copies">
            {open ? (
              choices.map(([name, text]) => (
                <button key={name} type="button" onClick={() => {
                  void copy(text(), name);
                  setOpen(false);
                }}>
                  {name}
                </button>
              ))
            ) : (
              <button type="button" aria-label="copy as link, command, SQL or Markdown" onClick={() => setOpen(true)}>
                copy as…
              </button>
            )}
          </span>
        </footer>
      )}
    </section>
  );
}

/** Pages that turned out to have nothing to show; the list at the left marks them. */
export const emptyPages = signal<ReadonlySet<string>>(new Set());

/** Says why there is nothing to show, and what would change that. `page`: the whole page is empty. Messages of the
 * library begin in lower case, as the commands print them. */
export function Empty(p: { children: ComponentChildren; page?: string }) {
  useEffect(() => {
    if (p.page && !emptyPages.value.has(p.page)) emptyPages.value = new Set([...emptyPages.value, p.page]);
  }, [p.page]);
  const text = typeof p.children === "string" ? p.children.trim() : null;
  return <p class="empty">{text ? text[0].toUpperCase() + text.slice(1) + (/[.:!?]$/.test(text) ? "" : ".") : p.children}</p>;
}
export const Failure = (p: { text: string }) => (
  <p class="failure" role="alert">
    {p.text}
  </p>
);
/** Says what the page waits for, and after a while for how long, and why that may be. */
export function Waiting(p: { what?: string }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => setSeconds((n) => n + 1), 1000);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <p class="waiting" role="status">
      {p.what ?? "opwatch computes what is shown here."}
      {seconds >= 2 && ` This takes ${seconds} s so far: the first look at a large recording takes longest, later ones are quick.`}
    </p>
  );
}
