// All tools of all servers. The gateway filters and pages, so that thousands are as quick as ten.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get, part, post } from "../api.js";
import * as live from "../live.js";
import { link, replace, route } from "../router.js";
import { me } from "../session.js";
import { useLoad } from "../store.js";
import { Action, Badge, Dialog, Empty, Field, Header, Loaded, Pages, Table, say } from "../ui.js";
import { count, number, plain, pretty } from "../text.js";
import { fieldSchema } from "./schema-form.js";

const PAGE = 50;
const MOST_LISTED = 1_000;
const MOST_SWITCHED = 20_000;
const RISKS = { reads: "", writes: "warn", destroys: "bad" };
const STATES = { enabled: "ok", disabled: "", withheld: "warn" };

export function Tools() {
  const { operator } = me.use();
  const { parameters } = route.use();
  const catalogue = live.catalogue.use();
  const [filter, setFilter] = useState({ text: "", server: "", category: "", state: "", sort: "key", ...parameters });
  const [page, setPage] = useState(1);
  const [chosen, setChosen] = useState(new Set());
  const [shown, setShown] = useState(null);
  const state = useLoad(
    (signal) => listTools(operator, { ...filter, page, page_size: PAGE }, signal),
    [...Object.values(filter), page, catalogue?.generation],
  );
  useEffect(() => {
    const { text, server, category, state } = filter;
    replace("tools", { text, server, category, state });
  }, Object.values(filter));
  const change = (next) => {
    setFilter((before) => ({ ...before, ...next }));
    setPage(1);
    if (chosen.size) setChosen(new Set());
  };
  const toggle = (keys, on) => {
    const next = new Set(chosen);
    for (const key of keys) on ? next.add(key) : next.delete(key);
    setChosen(next);
  };
  const chooseAll = async () => setChosen(new Set(await allKeys(filter)));
  const turn = (enabled) => async () => {
    const keys = [...chosen];
    for (let at = 0; at < keys.length; at += MOST_SWITCHED) await post("/tools/switch", { keys: keys.slice(at, at + MOST_SWITCHED), enabled });
    say(`${count(keys.length, "tool")} ${enabled ? "enabled" : "disabled"}.`);
    setChosen(new Set());
    state.reload();
  };
  const { data } = state;
  // While nothing in it changes, the table is the same value, and typing does not draw it again.
  const table = useMemo(
    () => data && html`<${ToolTable} tools=${data.tools} operator=${operator} chosen=${chosen} toggle=${toggle} sort=${filter.sort} change=${change} show=${setShown} />`,
    [data, operator, chosen, filter.sort],
  );
  return html`<${Header} title="Tools" />
    <${Filters} filter=${filter} change=${change} operator=${operator} />
    <${Loaded} state=${state}>${({ tools, total }) => html`
      <div class="bar">
        <span role="status">${number(total)} ${total === 1 ? "tool" : "tools"}${chosen.size > 0 && html`, <strong>${number(chosen.size)} chosen</strong>`}</span>
        ${operator && chosen.size > 0 && html`
          ${chosen.size < total && html`<${Action} class="small" act=${chooseAll}>Choose all ${number(total)}<//>`}
          <${Action} class="small" act=${turn(true)}>Enable<//>
          <${Action} class="small" act=${turn(false)}>Disable<//>
          <button type="button" class="small quiet" onClick=${() => setChosen(new Set())}>Choose none</button>`}
        <${Pages} page=${page} total=${total} size=${PAGE} setPage=${setPage} />
      </div>
      ${tools.length === 0 ? html`<${Empty} title="No tool fits">Use fewer words, or another filter.<//>` : html`
        ${table}
        ${total > PAGE && html`<div class="bar"><${Pages} page=${page} total=${total} size=${PAGE} setPage=${setPage} /></div>`}`}
    `}<//>
    ${shown && html`<${ToolDialog} tool=${shown} close=${() => setShown(null)} />`}`;
}

// Operators see tools in any state, others those that they may use.
async function listTools(operator, parameters, signal) {
  if (operator) {
    const { tools, pagination } = await get("/inventory", parameters, signal);
    return { tools, total: pagination.total };
  }
  const { text, server, category, page, page_size } = parameters;
  const { tools, pagination } = await get("/tools", { text, server, category, page, page_size }, signal);
  return { tools, total: pagination.total_tools };
}

async function allKeys(filter) {
  const keys = [];
  for (let page = 1; ; page += 1) {
    const { tools, pagination } = await get("/inventory", { ...filter, page, page_size: MOST_LISTED });
    keys.push(...tools.map((tool) => tool.key));
    if (!pagination.has_next) return keys;
  }
}

function Filters({ filter, change, operator }) {
  const servers = live.servers.use() || [];
  const categories = useLoad((signal) => get("/categories", {}, signal), []);
  const input = useRef();
  useEffect(() => {
    const focus = (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        event.preventDefault();
        input.current.focus();
      }
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const select = (name) => (event) => change({ [name]: event.target.value });
  return html`<form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
    <${Field} class="grow" label="Search">${(id) => html`<input id=${id} ref=${input} type="search" placeholder="words of the name or description  ( / )" value=${filter.text}
      onInput=${select("text")} />`}<//>
    <${Field} label="Server">${(id) => html`<select id=${id} value=${filter.server} onChange=${select("server")}>
      <option value="">All</option>${servers.map((item) => html`<option value=${item.key}>${plain(item.title)}</option>`)}</select>`}<//>
    <${Field} label="Category">${(id) => html`<select id=${id} value=${filter.category} onChange=${select("category")}>
      <option value="">All</option>${(categories.data?.categories || []).map((item) => html`<option value=${item.name}>${plain(item.name)}</option>`)}</select>`}<//>
    ${operator && html`<${Field} label="State">${(id) => html`<select id=${id} value=${filter.state} onChange=${select("state")}>
      <option value="">Any</option>${Object.keys(STATES).map((name) => html`<option>${name}</option>`)}</select>`}<//>`}
  </form>`;
}

function ToolTable({ tools, operator, chosen, toggle, sort, change, show }) {
  const keys = tools.map((tool) => tool.key);
  const all = keys.every((key) => chosen.has(key));
  const sorted = (name, title, kind = "") => {
    if (!operator) return html`<th scope="col" class=${kind}>${title}</th>`;
    const up = sort === name;
    const down = sort === `-${name}`;
    return html`<th scope="col" class=${kind} aria-sort=${up ? "ascending" : down ? "descending" : undefined}>
      <button type="button" class="sort" onClick=${() => change({ sort: up ? `-${name}` : name })}>${title}<span aria-hidden="true">${up ? " \u2191" : down ? " \u2193" : ""}</span></button></th>`;
  };
  const head = [
    operator && html`<th scope="col" class="check"><input type="checkbox" aria-label="Choose this page" checked=${all} onChange=${() => toggle(keys, !all)} /></th>`,
    sorted("key", "Tool"),
    sorted("server", "Server"),
    html`<th scope="col" class="wide-only">Description</th>`,
    operator && sorted("tokens", "Tokens", "number"),
    operator && html`<th scope="col">Risk</th>`,
    operator && sorted("state", "State"),
  ].filter(Boolean);
  return html`<${Table} label="Tools" head=${head}>
    ${tools.map((tool) => html`<tr key=${tool.key} class=${chosen.has(tool.key) ? "chosen" : ""}>
      ${operator && html`<td class="check"><input type="checkbox" aria-label=${`Choose ${tool.key}`} checked=${chosen.has(tool.key)}
        onChange=${(event) => toggle([tool.key], event.target.checked)} /></td>`}
      <td class="key"><button type="button" class="link" onClick=${() => show(tool)}>${plain(tool.name)}</button></td>
      <td class="nowrap">${plain(tool.server)}</td>
      <td class="clip wide-only">${plain(tool.description)}</td>
      ${operator && html`<td class="number">${number(tool.tokens)}</td>
        <td><${Badge} kind=${RISKS[tool.risk]}>${tool.risk}<//></td>
        <td><${Badge} kind=${STATES[tool.state]} title=${plain(tool.reason)}>${tool.state}<//></td>`}
    </tr>`)}
  <//>`;
}

export function ToolDialog({ tool, close }) {
  const withheld = tool.state && tool.state !== "enabled";
  const state = useLoad(async (signal) => (withheld ? { tools: [tool] } : get(`/tools/${part(tool.key)}`, {}, signal)), [tool.key]);
  return html`<${Dialog} wide title=${plain(tool.name)} close=${close}>
    <p class="facts"><code>${plain(tool.key)}</code>${tool.category && html`<span>${plain(tool.category)}</span>`}
      ${(tool.tags || []).map((tag) => html`<${Badge}>${plain(tag)}<//>`)}</p>
    ${tool.reason && html`<p class="reason">${plain(tool.reason)}</p>`}
    <${Loaded} state=${state}>${({ tools: [full] }) => html`
      <p class="description">${plain(full.description)}</p>
      ${full.input_schema && html`<h3>Arguments</h3><${Parameters} schema=${full.input_schema} />
        <details><summary>Schema</summary><pre tabindex="0">${pretty(full.input_schema)}</pre></details>`}
      ${full.examples?.length > 0 && html`<h3>Examples</h3><pre tabindex="0">${pretty(full.examples)}</pre>`}`}<//>
    <footer>
      ${tool.state === "withheld" && html`<a class="button" href=${link("approvals")}>Decide about it</a>`}
      ${!withheld && html`<a class="button primary" href=${link("try", { tool: tool.key })}>Try it</a>`}
    </footer>
  <//>`;
}

function Parameters({ schema }) {
  const properties = Object.entries(schema.properties || {});
  if (!properties.length) return html`<p class="quiet-line">None.</p>`;
  const required = new Set(schema.required || []);
  return html`<dl class="parameters">${properties.map(([name, item]) => html`
    <dt><code>${plain(name)}</code> <small>${plain(kindOf(fieldSchema(item, schema)))}${required.has(name) ? ", required" : ""}</small></dt>
    <dd>${plain(fieldSchema(item, schema).description)}</dd>`)}</dl>`;
}

function kindOf(item) {
  if (item?.enum) return item.enum.map((value) => JSON.stringify(value)).join(" | ");
  return [item?.type ?? "any"].flat().join(" or ");
}
