// The search lab: what a request finds, why in this order, why something is not found, and how good a set of requests is.
import { html, useState } from "../html.js";
import { post } from "../api.js";
import { link, replace, route } from "../router.js";
import { me } from "../session.js";
import { useLoad } from "../store.js";
import { Badge, Empty, Field, Header, Loaded, Problem, Table, Tabs, say } from "../ui.js";
import { count, duration, number, plain } from "../text.js";
import { LabelledSet, saveRow } from "./labelled-set.js";

const RANKERS = ["hybrid", "semantic", "keyword", "fuzzy", "boosted"];
const PLACES = [0, 1, 2, 3, 4];
const FITS = { strong: "ok", likely: "ok", weak: "warn" };
const PARTS = { cosine: "meaning", words: "words", cover: "cover", action: "verb", strength: "strength", lead: "lead", boost: "boost", phrase: "phrase", tags: "tags" };
const PART_HINTS = {
  cosine: "How near the meanings are.",
  words: "How well the words fit, by field and rarity.",
  cover: "Which part of the request's words the tool has.",
  action: "Whether the tool does what the request asks to be done.",
  strength: "All evidence together, compared with the best hit.",
  lead: "How far the first hit is ahead of the second.",
};

export function SearchLab() {
  const { operator } = me.use();
  const { parameters } = route.use();
  const [request, setRequest] = useState({ query: parameters.query || "", limit: 10, ranker: "", user: "", tenant: "", groups: "" });
  const [tab, setTab] = useState("hits");
  const [asked, setAsked] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const input = (name) => (event) => setRequest({ ...request, [name]: event.target.value });
  const search = async (event) => {
    event?.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const answer = await post("/search", body(request, request.ranker));
      setAsked((before) => ({ request, answer, number: (before?.number ?? 0) + 1 }));
      replace("search", { query: request.query });
      if (tab === "set") setTab("hits");
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const submit = (event) => { if (event.key === "Enter" && !event.shiftKey) search(event); };
  const tabs = { hits: "Hits", rankers: "Rankers", ...(operator && { why: "Why not?", set: "Labelled set" }) };
  return html`<${Header} title="Search lab" />
    <form class="lab" onSubmit=${search}>
      <${Field} class="grow" label="Request">${(id) => html`<textarea id=${id} rows="2" required placeholder="What should the tool do? As an agent or a person would say it."
        value=${request.query} onInput=${input("query")} onKeyDown=${submit}></textarea>`}<//>
      <button class="primary" disabled=${busy}>Search</button>
      <div class="filters">
        <${Field} label="Ranker">${(id) => html`<select id=${id} value=${request.ranker} onChange=${input("ranker")}>
          <option value="">default</option>${RANKERS.map((name) => html`<option>${name}</option>`)}</select>`}<//>
        <${Field} label="Hits">${(id) => html`<input id=${id} type="number" min="1" max="100" value=${request.limit} onInput=${input("limit")} />`}<//>
        ${operator && html`
          <${Field} label="As user">${(id) => html`<input id=${id} placeholder="yourself" value=${request.user} onInput=${input("user")} />`}<//>
          <${Field} label="Tenant">${(id) => html`<input id=${id} value=${request.tenant} onInput=${input("tenant")} />`}<//>
          <${Field} label="Groups">${(id) => html`<input id=${id} placeholder="a, b" value=${request.groups} onInput=${input("groups")} />`}<//>`}
      </div>
    </form>
    <${Problem} error=${error} />
    <${Tabs} label="Results" tabs=${tabs} chosen=${tab} choose=${setTab} />
    ${tab === "set" ? html`<${LabelledSet} ranker=${request.ranker} />`
      : !asked ? html`<${Empty} title="Ask for something">You see what agents are shown, and every part of each score.<//>`
      : tab === "hits" ? html`<${Hits} key=${asked.number} asked=${asked} operator=${operator} />`
      : tab === "rankers" ? html`<${Rankers} key=${asked.number} request=${asked.request} />`
      : html`<${WhyNot} key=${asked.number} request=${asked.request} />`}`;
}

function body(request, ranker) {
  return { query: request.query, limit: Number(request.limit), explain: true, detail: "brief", ...narrowed(request, ranker) };
}

// Who asks, and which ranker answers.
function narrowed({ user, tenant, groups }, ranker) {
  const names = groups.split(",").map((name) => name.trim()).filter(Boolean);
  return { ...(ranker && { ranker }), ...(user && { user }), ...(tenant && { tenant }), ...(names.length && { groups: names }) };
}

function Hits({ asked, operator }) {
  const { tools, metadata, suggestions } = asked.answer;
  const [right, setRight] = useState([]);
  const toggle = (key) => setRight(right.includes(key) ? right.filter((item) => item !== key) : [...right, key]);
  const save = () => {
    saveRow({ query: asked.request.query, gold: right });
    say(right.length ? "Saved as a labelled row." : "Saved as a row for which nothing fits.");
    setRight([]);
  };
  const best = Math.max(...tools.map((tool) => tool.score), 0.0001);
  return html`
    <p class="facts" role="status">
      <span>${count(metadata.matched, "tool")} matched of ${number(metadata.total)}</span><span>${duration(metadata.took_ms)}</span>
      <span>ranked by ${metadata.ranker}</span><span>${number(metadata.tokens)} tokens, ${number(metadata.tokens_saved)} saved</span>
      ${metadata.degraded && html`<${Badge} kind="warn">${plain(metadata.degraded)}<//>`}
      ${metadata.stale && html`<${Badge} kind="warn">old catalogue<//>`}
    </p>
    ${suggestions?.length > 0 && html`<p class="facts">${suggestions.map((text) => html`<span>${plain(text)}</span>`)}</p>`}
    ${tools.length === 0 && html`<${Empty} title="Nothing fits">No tool is visible here, or none has these words.<//>`}
    <ol class="hits">${tools.map((tool) => html`<li key=${tool.key} class="card">
      <div class="hit-head">
        <a class="key" href=${link("try", { tool: tool.key })}>${plain(tool.key)}</a>
        ${tool.fit && html`<${Badge} kind=${FITS[tool.fit]}>${tool.fit}<//>`}
        ${tool.available === false && html`<${Badge} kind="bad">not available<//>`}
        <meter min="0" max=${Math.max(1, best)} value=${tool.score} aria-label="Score"></meter><b class="score">${tool.score}</b>
        ${operator && html`<label class="right"><input type="checkbox" checked=${right.includes(tool.key)} onChange=${() => toggle(tool.key)} /> right<span class="hidden"> for this request: ${plain(tool.key)}</span></label>`}
      </div>
      <p>${plain(tool.description)}</p>
      <${Parts} parts=${tool.explain} />
    </li>`)}</ol>
    ${operator && html`<div class="bar"><button type="button" onClick=${save}>Save as labelled row</button>
      <small>${right.length ? `${count(right.length, "tool")} right` : "none right: nothing fits"}</small></div>`}`;
}

// The parts of a score, as the ranker gives them.
function Parts({ parts }) {
  if (!parts) return null;
  const numbers = Object.entries(parts).filter(([name, value]) => typeof value === "number" && name in PARTS);
  const words = parts.matched_words;
  const matched = Array.isArray(words) ? words : Object.entries(words || {}).map(([word, fields]) => `${word} (${fields.join(", ")})`);
  return html`<dl class="parts">
    ${numbers.map(([name, value]) => html`<div title=${PART_HINTS[name]}><dt>${PARTS[name]}</dt><dd>${value.toFixed(2)}</dd></div>`)}
    ${parts.server_named && html`<div><dt>server</dt><dd>named</dd></div>`}
    ${matched.length > 0 && html`<div class="long"><dt>matched</dt><dd>${plain(matched.join(", "))}</dd></div>`}
    ${parts.matched_fields?.length > 0 && html`<div class="long"><dt>fields</dt><dd>${plain(parts.matched_fields.join(", "))}</dd></div>`}
    ${parts.note && html`<div class="long"><dt>note</dt><dd>${plain(parts.note)}</dd></div>`}
  </dl>`;
}

// The first hits of every ranker side by side.
function Rankers({ request }) {
  const state = useLoad((signal) => Promise.all(RANKERS.map(async (ranker) => {
    const { tools } = await post("/search", { ...body(request, ranker), limit: PLACES.length }, signal);
    return { ranker, tools };
  })), []);
  return html`<${Loaded} state=${state}>${(answers) => html`<${Comparison} answers=${answers} />`}<//>`;
}

function Comparison({ answers }) {
  const votes = new Map();
  for (const { tools } of answers) for (const { key } of tools) votes.set(key, (votes.get(key) || 0) + 1);
  return html`<${Table} label="Rankers" head=${["Place", ...answers.map((answer) => answer.ranker)]}>
    ${PLACES.map((place) => html`<tr><th scope="row">${place + 1}</th>
      ${answers.map(({ tools }) => html`<td>${tools[place] && html`
        <a class="key ${votes.get(tools[place].key) > 2 ? "agreed" : ""}" href=${link("try", { tool: tools[place].key })}>${plain(tools[place].name)}</a>
        <br /><small>${plain(tools[place].server)} \u00b7 ${tools[place].score}</small>`}</td>`)}</tr>`)}
  <//>
  <p class="quiet-line">Each ranker has a scale of its own. Tools that most of them find are bold.</p>`;
}

function WhyNot({ request }) {
  const [key, setKey] = useState("");
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const ask = async (event, name = key) => {
    event?.preventDefault();
    setKey(name);
    setError(null);
    try {
      setFound(await post("/explain", { query: request.query, key: name, ...narrowed(request, request.ranker) }));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<form class="filters" onSubmit=${ask}>
      <${Field} class="grow" label="Key of the tool that you expected">${(id) => html`<input id=${id} required placeholder="server__tool" value=${key} onInput=${(event) => setKey(event.target.value)} />`}<//>
      <button class="primary">Explain</button>
    </form>
    <${Problem} error=${error} />
    ${found && html`<div class="card" role="status">
      <p><strong>${plain(found.key)}</strong>: ${plain(found.reason)}.</p>
      <p class="facts">
        <span>May be seen: <${Badge} kind=${found.see.allowed ? "ok" : "bad"}>${found.see.allowed ? "yes" : "no"}<//> ${plain(found.see.because)}</span>
        <span>May be called: <${Badge} kind=${found.call.allowed ? "ok" : "bad"}>${found.call.allowed ? "yes" : "no"}<//> ${plain(found.call.because)}</span>
      </p>
      ${found.suggestions.length > 0 && html`<p>Did you mean ${found.suggestions.map((name) => html`<button type="button" class="link" onClick=${() => ask(null, name)}>${plain(name)}</button> `)}?</p>`}
      ${found.rank && html`<p class="facts"><span>Rank ${found.rank}</span><span>score ${found.score?.toFixed(4)}</span>${found.fit && html`<span>${found.fit}</span>`}</p>`}
      <${Parts} parts=${found.parts} />
      ${found.before.length > 0 && html`<h3>Before it</h3><ul>${found.before.map((name) => html`<li class="key">${plain(name)}</li>`)}</ul>`}
    </div>`}`;
}
