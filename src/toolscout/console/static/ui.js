// The parts that all screens are made of.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { number, plain } from "./text.js";
import { store } from "./store.js";

const toasts = store([]);

// A message that stays for a moment. Screen readers say it.
export function say(text, kind = "ok") {
  const toast = { text, kind };
  toasts.set([...toasts.get(), toast]);
  setTimeout(() => toasts.set(toasts.get().filter((item) => item !== toast)), 6_000);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.use().map((item) => html`<p class="toast ${item.kind}">${plain(item.text)}</p>`)}
  </div>`;
}

// A button that does something at the gateway: it waits, and says what went wrong.
export function Action({ act, done, kind = "", children, ...rest }) {
  const [busy, setBusy] = useState(false);
  const click = async () => {
    setBusy(true);
    try {
      await act();
      if (done) say(done);
    } catch (error) {
      say([error.message, error.hint].filter(Boolean).join(" \u2014 "), "bad");
    }
    setBusy(false);
  };
  return html`<button type="button" class=${kind} disabled=${busy || rest.disabled} aria-busy=${busy} ...${rest} onClick=${click}>
    ${children}
  </button>`;
}

export function Problem({ error }) {
  if (!error) return null;
  return html`<div class="notice bad" role="alert">
    <strong>${plain(error.message)}</strong>
    ${error.hint && html`<span>${plain(error.hint)}</span>`}
    ${error.suggestions?.length > 0 && html`<span>Did you mean ${error.suggestions.map(plain).join(", ")}?</span>`}
  </div>`;
}

// What a screen shows before its first answer, and when there is none.
export function Loaded({ state, children }) {
  if (state.data) return html`<${Problem} error=${state.error} />${children(state.data)}`;
  if (state.error) return html`<${Problem} error=${state.error} />`;
  return html`<p class="loading" role="status">Loading\u2026</p>`;
}

export function Header({ title, children }) {
  useEffect(() => {
    document.title = `${title} \u00b7 Toolscout`;
  }, [title]);
  return html`<header class="screen-header"><h1>${title}</h1><div class="actions">${children}</div></header>`;
}

export function Badge({ kind = "", children, ...rest }) {
  return html`<span class="badge ${kind}" ...${rest}>${children}</span>`;
}

// A label with its input, select or textarea, which gets the id as its child's argument.
export function Field({ label, hint, children, class: name = "" }) {
  const id = useId();
  return html`<div class="field ${name}">
    <label for=${id}>${label}</label>
    ${children(id)}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p><strong>${title}</strong></p><p>${children}</p></div>`;
}

export function Dialog({ title, close, children, wide }) {
  const ref = useRef();
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  const id = useId();
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby=${id} onClose=${close} onClick=${(event) => event.target === ref.current && close()}>
    <div class="dialog-body">
      <header><h2 id=${id}>${title}</h2><button type="button" class="quiet" aria-label="Close" onClick=${close}>\u2715</button></header>
      ${children}
    </div>
  </dialog>`;
}

// Asks before something that cannot be undone.
export function Confirm({ title, text, action, kind = "danger", act, close }) {
  return html`<${Dialog} title=${title} close=${close}>
    <p>${text}</p>
    <footer>
      <button type="button" onClick=${close}>Cancel</button>
      <${Action} kind=${kind} act=${async () => { await act(); close(); }}>${action}<//>
    </footer>
  <//>`;
}

export function Tabs({ label, tabs, chosen, choose }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(tabs);
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length];
    choose(next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${Object.entries(tabs).map(([name, title]) => html`<button type="button" role="tab" data-tab=${name} aria-selected=${name === chosen}
      tabindex=${name === chosen ? 0 : -1} onClick=${() => choose(name)}>${title}</button>`)}
  </div>`;
}

// Text to copy. Where the browser forbids it, the text is selected instead.
export function Copied({ text, label }) {
  const ref = useRef();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      getSelection().selectAllChildren(ref.current);
      say("Press Ctrl-C to copy.");
    }
  };
  return html`<div class="copied">
    <pre ref=${ref} tabindex="0" aria-label=${label}>${text}</pre>
    <button type="button" class="small" onClick=${copy}>Copy<span class="hidden"> ${label}</span></button>
  </div>`;
}

export function Table({ label, head, children }) {
  return html`<div class="table" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead><tr>${head.map((cell) => (typeof cell === "string" ? html`<th scope="col">${cell}</th>` : cell))}</tr></thead>
      <tbody>${children}</tbody>
    </table>
  </div>`;
}

// The buttons that turn the pages of a list. A list that fits on one has none.
export function Pages({ page, total, size, setPage }) {
  const last = Math.max(1, Math.ceil(total / size));
  if (last === 1) return null;
  return html`<span class="pages">
    <button type="button" class="small" disabled=${page <= 1} onClick=${() => setPage(page - 1)} aria-label="Previous page">\u2039</button>
    ${number((page - 1) * size + 1)}\u2013${number(Math.min(page * size, total))}
    <button type="button" class="small" disabled=${page >= last} onClick=${() => setPage(page + 1)} aria-label="Next page">\u203a</button>
  </span>`;
}
