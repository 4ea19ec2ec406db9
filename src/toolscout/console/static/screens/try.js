// Trying a tool: a form made from its schema, the result as text, and what was tried before.
import { html, useEffect, useState } from "../html.js";
import { get, part, post } from "../api.js";
import { go, route } from "../router.js";
import { kept, useLoad } from "../store.js";
import { Badge, Empty, Field, Header, Loaded, Problem, Tabs } from "../ui.js";
import { clock, duration, plain, pretty } from "../text.js";
import { SchemaForm, initial, prune } from "./schema-form.js";

const PLACE = "toolscout-tried";
const KEPT = 20;

export function TryTool() {
  const { parameters } = route.use();
  return html`<${Header} title="Try a tool" /><${Choose} key=${parameters.tool} chosen=${parameters.tool} />
    ${parameters.tool ? html`<${Tool} key=${parameters.tool} name=${parameters.tool} />`
      : html`<${Empty} title="Choose a tool">Search for it above, or press \u201cTry it\u201d in the list of tools.<//>`}`;
}

function Choose({ chosen }) {
  const [text, setText] = useState("");
  const [hits, setHits] = useState([]);
  useEffect(() => {
    const control = new AbortController();
    if (!text.trim()) setHits([]);
    else post("/search", { query: text, limit: 6, detail: "brief" }, control.signal).then((answer) => setHits(answer.tools), () => {});
    return () => control.abort();
  }, [text]);
  return html`<form role="search" onSubmit=${(event) => { event.preventDefault(); if (hits[0]) go("try", { tool: hits[0].key }); }}>
    <${Field} label=${chosen ? "Another tool" : "Tool"}>${(id) => html`<input id=${id} type="search" autocomplete="off" placeholder="what it should do, or its name" value=${text} onInput=${(event) => setText(event.target.value)} />`}<//>
    ${hits.length > 0 && html`<ul class="rows choices">${hits.map((hit) => html`<li><a href=${`#/try?tool=${encodeURIComponent(hit.key)}`}>
      <span><strong class="key">${plain(hit.key)}</strong><small>${plain(hit.description)}</small></span></a></li>`)}</ul>`}
  </form>`;
}

function Tool({ name }) {
  const state = useLoad((signal) => get(`/tools/${part(name)}`, {}, signal), [name]);
  return html`<${Loaded} state=${state}>${({ tools: [tool] }) => html`<${Call} tool=${tool} />`}<//>`;
}

function Call({ tool }) {
  const [way, setWay] = useState("form");
  const [values, setValues] = useState(() => initial(tool.input_schema, tool.examples?.[0]));
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const [history, setHistory] = useState(() => kept(sessionStorage, PLACE, (item) => item?.tool && item.arguments));
  const switchTo = (next) => {
    if (next === "json") setText(JSON.stringify(prune(values, tool.input_schema), null, 2));
    else try { setValues(JSON.parse(text || "{}")); } catch { /* the form keeps what it had */ }
    setWay(next);
  };
  const call = async (event) => {
    event.preventDefault();
    setError(null);
    setBusy(true);
    try {
      const given = way === "json" ? JSON.parse(text || "{}") : prune(values, tool.input_schema);
      const answer = await post(`/tools/${part(tool.key)}/call`, { arguments: given, version: tool.version });
      setResult(answer);
      const tried = { tool: tool.key, at: Date.now(), arguments: given, error: answer.is_error, took_ms: answer.took_ms };
      const next = [tried, ...history].slice(0, KEPT);
      setHistory(next);
      sessionStorage.setItem(PLACE, JSON.stringify(next));
    } catch (problem) {
      setResult(null);
      setError(problem instanceof SyntaxError ? { message: "The arguments are not JSON.", hint: problem.message } : problem);
    }
    setBusy(false);
  };
  const writes = tool.call_with !== "call_read_tool";
  return html`<div class="columns try">
    <section class="card" aria-label="Arguments">
      <h2 class="key">${plain(tool.key)}</h2>
      <p class="facts"><${Badge} kind=${writes ? "warn" : "ok"}>${writes ? "may write" : "reads only"}<//><span>${plain(tool.category)}</span></p>
      <p class="description">${plain(tool.description)}</p>
      <${Tabs} label="How to write the arguments" tabs=${{ form: "Form", json: "JSON" }} chosen=${way} choose=${switchTo} />
      <form onSubmit=${call}>
        ${way === "form" ? html`<${SchemaForm} schema=${tool.input_schema} values=${values} change=${setValues} />`
          : html`<${Field} label="Arguments">${(id) => html`<textarea id=${id} class="code" rows="10" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea>`}<//>`}
        <button class="primary" disabled=${busy} aria-busy=${busy}>${busy ? "Calling\u2026" : "Call"}</button>
      </form>
    </section>
    <section aria-label="Result">
      <div aria-live="polite"><${Problem} error=${error} />${result && html`<${Result} result=${result} />`}</div>
      ${!result && !error && html`<p class="quiet-line">The result appears here.</p>`}
      <${History} history=${history.filter((item) => item.tool === tool.key)} use=${(given) => { setValues({ ...initial(tool.input_schema), ...given }); setText(JSON.stringify(given, null, 2)); }} />
    </section>
  </div>`;
}

function Result({ result }) {
  const content = result.result.content || [];
  return html`<div class="card">
    <p class="facts"><${Badge} kind=${result.is_error ? "bad" : "ok"}>${result.is_error ? "the tool failed" : "ok"}<//><span>${duration(result.took_ms)}</span></p>
    ${result.repairs.length > 0 && html`<p class="hint">Repaired: ${result.repairs.map(plain).join("; ")}</p>`}
    ${content.map((item) => (item.type === "text" ? html`<pre class="result" tabindex="0">${plain(item.text)}</pre>` : html`<pre class="result" tabindex="0">${pretty(item)}</pre>`))}
    ${result.result.structuredContent && html`<details><summary>Structured content</summary><pre tabindex="0">${pretty(result.result.structuredContent)}</pre></details>`}
  </div>`;
}

function History({ history, use }) {
  if (!history.length) return null;
  return html`<h2>Tried before</h2><ul class="rows">${history.map((item) => html`<li><button type="button" onClick=${() => use(item.arguments)}>
    <span class="dot ${item.error ? "bad" : "ok"}" aria-hidden="true"></span>
    <span><code>${plain(JSON.stringify(item.arguments)).slice(0, 200)}</code><small>${clock(item.at)}, ${duration(item.took_ms)}${item.error ? ", failed" : ""}</small></span></button></li>`)}</ul>`;
}
