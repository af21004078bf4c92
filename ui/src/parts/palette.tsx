// palette.tsx: the command palette (Ctrl-K): pages and actions by name.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go, link } from "../address";
import type { Page } from "../pages";
import { copy } from "./panel";

interface Action {
  title: string;
  hint: string;
  run: () => void;
}

export function Palette(p: { pages: Page[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const actions = useMemo<Action[]>(
    () => [
      ...p.pages.map((page) => ({ title: page.title, hint: "page", run: () => go({ page: page.name, params: {} }) })),
      { title: "Copy a link to this state", hint: "with the token: for your own browsers", run: () => void copy(link(), "link") },
      { title: "Timeline: fit everything", hint: "f, 0", run: () => go({ page: "timeline", params: {} }) },
      { title: "Theme: as the system", hint: "", run: () => setTheme("") },
      { title: "Theme: light", hint: "", run: () => setTheme("light") },
      { title: "Theme: dark", hint: "", run: () => setTheme("dark") },
      { title: "Keys", hint: "W S zoom · A D move · wheel scrolls, with Ctrl zooms · f fits · . , next, previous · m marks · [ ] steps · e everything in sight as a table · / searches · Shift-drag selects an area", run: () => {} },
    ],
    [],
  );
  const found = actions.filter((a) => (a.title + " " + a.hint).toLowerCase().includes(text.toLowerCase()));
  // A text that is not an action is searched in the timeline.
  const all = text && !found.length ? [{ title: `Search the timeline for “${text}”`, hint: "", run: () => go({ page: "timeline", params: { q: text } }) }] : found;
  useLayoutEffect(() => input.current?.focus(), []); // focus before the first key is typed
  const run = (action: Action | undefined) => {
    action?.run();
    p.onClose();
  };
  return (
    <div class="palette-back" onClick={p.onClose}>
      <div class="palette" role="dialog" aria-label="palette" onClick={(e) => e.stopPropagation()}>
        <input
          ref={input}
          aria-label="page or action"
          placeholder="page, action, or a name to search for"
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(e) => {
            if (e.key === "Escape") p.onClose();
            else if (e.key === "Enter") run(all[at]);
            else if (e.key === "ArrowDown") setAt(Math.min(all.length - 1, at + 1));
            else if (e.key === "ArrowUp") setAt(Math.max(0, at - 1));
            else return;
            e.preventDefault();
          }}
        />
        <ul role="listbox" aria-label="actions" tabIndex={0}>
          {all.map((action, i) => (
            <li key={action.title} role="option" aria-selected={i === at} class={i === at ? "on" : ""} onClick={() => run(action)}>
              {action.title} <small>{action.hint}</small>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

export function setTheme(theme: string) {
  document.documentElement.dataset.theme = theme;
  try {
    if (theme) localStorage.setItem("opwatch-theme", theme);
    else localStorage.removeItem("opwatch-theme");
  } catch {
    /* a report opened from a file may have no storage */
  }
  window.dispatchEvent(new Event("resize"));
}

try {
  document.documentElement.dataset.theme = localStorage.getItem("opwatch-theme") ?? "";
} catch {
  /* a report opened from a file may have no storage */
}
