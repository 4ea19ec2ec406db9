// What waits for a decision: definitions that changed, and tools whose text could mislead a model.
import { html, useEffect, useState } from "../html.js";
import { get, post } from "../api.js";
import * as live from "../live.js";
import { link, route } from "../router.js";
import { refresh } from "../session.js";
import { useLoad } from "../store.js";
import { Action, Badge, Empty, Header, Loaded, Pages } from "../ui.js";
import { count, date, plain, pretty } from "../text.js";

const PAGE = 50;

export function Approvals() {
  const catalogue = live.catalogue.use();
  const { server } = route.use().parameters;
  const [decided, setDecided] = useState(false);
  const [page, setPage] = useState(1);
  const state = useLoad((signal) => get("/changes", { decided, server, page, page_size: PAGE }, signal), [decided, server, page, catalogue?.generation]);
  // The last one of a page may have been decided about.
  const last = Math.max(1, state.data?.pagination.total_pages ?? page);
  useEffect(() => setPage(Math.min(page, last)), [last]);
  const decide = (changes, verdict) => async () => {
    const scopes = Map.groupBy(changes, (item) => JSON.stringify([item.tenant, item.user]));
    for (const [scope, items] of scopes) {
      const [tenant, user] = JSON.parse(scope);
      const keys = items.map((item) => (verdict === "approved" ? item.approve : item.key));
      await post("/changes", { keys, verdict, tenant, ...(user && { user }) });
    }
    state.reload();
    refresh();
  };
  return html`<${Header} title="Approvals">
      <label class="check-line"><input type="checkbox" checked=${decided} onChange=${() => { setDecided(!decided); setPage(1); }} /> also those that were kept out</label>
    <//>
    ${server && html`<p class="facts"><span>Of ${plain(server)} only.</span><a href=${link("approvals")}>Show all</a></p>`}
    <${Loaded} state=${state}>${({ changes, pagination }) => {
      if (!changes.length) return html`<${Empty} title="Nothing to decide">Definitions appear here when they change after they were first seen, or when their text could mislead a model.<//>`;
      const changed = changes.filter((item) => item.state === "changed");
      return html`<div class="bar"><span>${count(pagination.total, "definition")}</span><${Pages} page=${page} total=${pagination.total} size=${PAGE} setPage=${setPage} />
          ${changed.length > 1 && html`<${Action} class="small" act=${decide(changed, "approved")} done="Approved.">Approve ${pagination.total > PAGE ? "those of this page" : `all ${changed.length}`} that only changed<//>`}</div>
        ${changes.map((item) => html`<${Change} key=${`${item.tenant} ${item.user} ${item.key}`} change=${item} decide=${decide} />`)}`;
    }}<//>`;
}

function Change({ change, decide }) {
  const bad = change.state !== "changed";
  return html`<article class="card change" aria-label=${change.key}>
    <div class="hit-head"><h2 class="key">${plain(change.key)}</h2><${Badge} kind=${bad ? "bad" : "warn"}>${change.state}<//>
      <small>${plain([change.tenant !== "local" && change.tenant, change.user].filter(Boolean).join(" / "))}</small></div>
    ${change.held && !change.findings.length && html`<p class="reason">${plain(change.held)}</p>`}
    ${change.findings.length > 0 && html`<${Findings} findings=${change.findings} definition=${change.after} />`}
    ${change.diff.length > 0 ? html`<h3>What changed <small>since ${date(Date.parse(change.pinned_at) / 1000)}</small></h3><${Diff} lines=${change.diff} />`
      : html`<details><summary>Definition</summary><pre tabindex="0">${pretty(change.after)}</pre></details>`}
    <div class="buttons">
      <${Action} kind="primary small" act=${decide([change], "approved")} done="Approved.">Approve this version<//>
      ${change.state !== "kept out" && html`<${Action} kind="small danger" act=${decide([change], "kept_out")} done="Kept out.">Keep out<//>`}
      <small class="version">${plain(change.version)}</small>
    </div>
  </article>`;
}

// Each finding with its evidence, marked in the text of the definition where it is found there.
function Findings({ findings, definition }) {
  return html`<ul class="findings">${findings.map((item) => html`<li>
    <p><${Badge} kind=${item.severity === "quarantine" ? "bad" : "warn"}>${plain(item.rule)}<//> ${plain(item.reason)} <small>in ${plain(item.where)}</small></p>
    <blockquote>${marked(textAt(definition, item.where), item.excerpt)}</blockquote>
  </li>`)}</ul>`;
}

const AROUND = 160;

function marked(text, excerpt) {
  const [start, end] = find(text, excerpt);
  if (end === 0) return html`<mark>${plain(excerpt)}</mark>`;
  const from = Math.max(0, start - AROUND);
  const to = Math.min(text.length, end + AROUND);
  return html`${from > 0 ? "\u2026" : ""}${plain(text.slice(from, start))}<mark>${plain(text.slice(start, end))}</mark>${plain(text.slice(end, to))}${to < text.length ? "\u2026" : ""}`;
}

// Finds an excerpt, of which the screen may have changed the case and dropped the punctuation.
function find(text, excerpt) {
  const letters = (value) => [...value.matchAll(/[\p{L}\p{N}]/gu)];
  const wanted = letters(excerpt.replace(/\u2026$/, "")).map(([letter]) => letter.toLowerCase()).join("");
  const own = letters(text);
  const at = wanted ? own.map(([letter]) => letter.toLowerCase()).join("").indexOf(wanted) : -1;
  if (at < 0) return [0, 0];
  const last = own[at + wanted.length - 1];
  return [own[at].index, last.index + last[0].length];
}

const NAMES = { inputSchema: "input_schema", outputSchema: "output_schema" };

// The text of a definition at a place such as `/description` or `/inputSchema/properties/path/description`.
function textAt(definition, where) {
  let value = definition;
  for (const name of where.split("/").slice(1)) value = value?.[name] ?? value?.[NAMES[name]];
  return typeof value === "string" ? value : "";
}

function Diff({ lines }) {
  const kinds = { "#": "field", "-": "removed", "+": "added", "@": "gap", " ": "same" };
  return html`<div class="diff" tabindex="0" role="region" aria-label="Difference">${lines.map((line, at) => {
    const kind = kinds[line[0]] || "same";
    const pair = kind === "removed" ? lines[at + 1] : kind === "added" ? lines[at - 1] : "";
    const text = line.slice(kind === "field" ? 2 : 1);
    const own = { removed: "+", added: "-" }[kind];
    const sign = { removed: "removed: ", added: "added: " }[kind];
    return html`<div class=${kind}>${sign && html`<span class="hidden">${sign}</span>`}${own && pair?.[0] === own ? difference(text, pair.slice(1)) : plain(text)}</div>`;
  })}</div>`;
}

// Marks the part of a line that its counterpart does not have.
function difference(text, other) {
  let start = 0;
  while (start < text.length && text[start] === other[start]) start += 1;
  let end = 0;
  while (end < text.length - start && end < other.length - start && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  const to = text.length - end;
  return html`${plain(text.slice(0, start))}<mark>${plain(text.slice(start, to))}</mark>${plain(text.slice(to))}`;
}
