// Every call and every act of an operator, as they happen: the lines of the audit log.
import { html, useCallback, useState } from "../html.js";
import { get } from "../api.js";
import { useActivity } from "../live.js";
import { link, replace, route } from "../router.js";
import { useLoad } from "../store.js";
import { Badge, Empty, Field, Header, Loaded, Table } from "../ui.js";
import { bytes, clock, duration, plain } from "../text.js";

const SHOWN = 200;

export function ActivityScreen() {
  const [filter, setFilter] = useState(route.get().parameters);
  const [fresh, setFresh] = useState([]);
  const [paused, setPaused] = useState(false);
  const state = useLoad(
    (signal) => { setFresh([]); return get("/activity", { page_size: SHOWN, ...filter }, signal); },
    [filter.tool, filter.user, filter.act, filter.outcome],
  );
  const take = useCallback(
    (line) => { if (!paused && fits(line, filter)) setFresh((before) => [line, ...before].slice(0, SHOWN)); },
    [filter, paused],
  );
  useActivity(take);
  const outcomes = new Set([...(state.data?.outcomes || []), ...fresh.map((line) => line.outcome), filter.outcome].filter(Boolean));
  const change = (name) => (event) => {
    const next = { ...filter, [name]: event.target.value };
    setFilter(next);
    replace("activity", next);
  };
  return html`<${Header} title="Activity">
      <button type="button" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Pause"}</button>
    <//>
    <form class="filters" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="Tool">${(id) => html`<input id=${id} type="search" value=${filter.tool || ""} onInput=${change("tool")} />`}<//>
      <${Field} label="User">${(id) => html`<input id=${id} type="search" value=${filter.user || ""} onInput=${change("user")} />`}<//>
      <${Field} label="What">${(id) => html`<select id=${id} value=${filter.act || ""} onChange=${change("act")}>
        <option value="">Everything</option><option value="call">Calls</option></select>`}<//>
      <${Field} label="Outcome">${(id) => html`<select id=${id} value=${filter.outcome || ""} onChange=${change("outcome")}>
        <option value="">Any</option>${[...outcomes].sort().map((name) => html`<option>${name}</option>`)}</select>`}<//>
    </form>
    <${Loaded} state=${state}>${({ lines, recorded }) => {
      const listed = new Set(lines.map(identity));
      const all = [...fresh.filter((line) => !listed.has(identity(line))), ...lines].slice(0, SHOWN);
      if (!recorded) return html`<${Empty} title="No audit log is kept">Set TOOLSCOUT_AUDIT to a file.<//>`;
      if (!all.length) return html`<${Empty} title="Nothing yet">Calls appear here as they are made.<//>`;
      return html`<${CallTable} lines=${all} label="Activity" />`;
    }}<//>`;
}

// A line has no number, but its time and duration are exact. One of the last moment may come with the list and live.
function identity(line) {
  return JSON.stringify(line);
}

function fits(line, filter) {
  return ["act", "outcome", "user"].every((name) => !filter[name] || line[name] === filter[name])
    && (!filter.tool || String(line.tool || "").toLowerCase().includes(filter.tool.toLowerCase()));
}

export function CallTable({ lines, label }) {
  return html`<${Table} label=${label} head=${["Time", "What", "Who", "Arguments", "Result", "Took", "Outcome"]}>
    ${lines.map((line) => html`<tr key=${identity(line)}>
      <td class="nowrap" title=${line.at}><time datetime=${line.at}>${clock(line.at)}</time></td>
      <td class="key">${line.tool ? html`<a href=${link("try", { tool: line.tool })}>${plain(line.tool)}</a>` : plain(line.act)}
        ${line.tool && line.act !== "call" && html` <small>${plain(line.act)}</small>`}</td>
      <td>${plain(line.user || line.by || "local")}${line.tenant && line.tenant !== "local" && html` <small>${plain(line.tenant)}</small>`}</td>
      <td class="shape">${shape(line.arguments)}</td>
      <td class="number nowrap">${typeof line.bytes === "number" ? bytes(line.bytes) : ""}</td>
      <td class="number nowrap">${line.ms === undefined ? "" : duration(line.ms)}</td>
      <td>${line.outcome && html`<${Badge} kind=${line.outcome === "ok" ? "ok" : "bad"}>${plain(line.outcome)}<//>`}</td>
    </tr>`)}
  <//>`;
}

// The shape of arguments: names, types and sizes. The log holds no values.
function shape(value) {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return plain(value);
  return Object.entries(value).map(([name, item]) => html`<span><b>${plain(name)}</b> ${brief(item)}</span>`);
}

function brief(item) {
  return plain(typeof item === "string" ? item : JSON.stringify(item));
}
