// API keys, and what the policy lets a caller do.
import { html, useState } from "../html.js";
import { get, part, post } from "../api.js";
import { useLoad } from "../store.js";
import { Action, Badge, Confirm, Copied, Dialog, Empty, Field, Header, Loaded, Pages, Problem, Table } from "../ui.js";
import { count, date, plain } from "../text.js";

const PAGE = 50;
const KINDS = { good: "ok", expired: "warn", revoked: "" };

export function Access() {
  const [page, setPage] = useState(1);
  const keys = useLoad((signal) => get("/keys", { page, page_size: PAGE }, signal), [page]);
  const [dialog, setDialog] = useState(null);
  const done = (key) => {
    keys.reload();
    setDialog(key ? html`<${NewKey} text=${key} close=${() => setDialog(null)} />` : null);
  };
  const close = () => setDialog(null);
  return html`<${Header} title="Access"><button type="button" class="primary" onClick=${() => setDialog(html`<${CreateKey} done=${done} close=${close} />`)}>New key</button><//>
    <section aria-labelledby="keys"><h2 id="keys">API keys</h2>
      <${Loaded} state=${keys}>${({ keys: rows, pagination }) => (rows.length ? html`
          <div class="bar"><span role="status">${count(pagination.total, "key")}</span><${Pages} page=${page} total=${pagination.total} size=${PAGE} setPage=${setPage} /></div>
          <${KeyTable} rows=${rows} done=${done} open=${setDialog} close=${close} />`
        : html`<${Empty} title="No keys yet">A key is for one agent or program, of one tenant and perhaps one user.<//>`)}<//>
    </section>
    <${PolicyCheck} />
    ${dialog}`;
}

function KeyTable({ rows, done, open, close }) {
  const rotate = (row) => async () => done((await post(`/keys/${part(row.id)}/rotate`)).key);
  const revoke = (row) => () => open(html`<${Confirm} title="Revoke this key?" action="Revoke" close=${close}
    text="Whoever uses it is refused within about a second." act=${async () => { await post(`/keys/${part(row.id)}/revoke`); done(); }} />`);
  return html`<${Table} label="Keys and their callers" head=${["Key", "Caller", "Scopes", "Created", "Last used", "State", "Change"]}>
    ${rows.map((row) => html`<tr key=${row.id}>
      <td><span class="key">tsk_${plain(row.id)}</span><br /><small>${plain(row.note)}</small></td>
      <td>${plain([row.tenant, row.user].filter(Boolean).join(" / "))}<br /><small>${row.groups.map(plain).join(", ")}</small></td>
      <td>${row.scopes.map(plain).join(", ")}</td><td class="nowrap">${date(row.created_at)}</td><td class="nowrap">${date(row.last_used_at) || "never"}</td>
      <td><${Badge} kind=${KINDS[row.state]}>${row.state}<//></td>
      <td class="nowrap">${row.state === "good" && html`<${Action} class="small" act=${rotate(row)} aria-label=${`Rotate ${row.id}`}>Rotate<//>
        ${" "}<button type="button" class="small danger" aria-label=${`Revoke ${row.id}`} onClick=${revoke(row)}>Revoke</button>`}</td>
    </tr>`)}<//>`;
}

function CreateKey({ done, close }) {
  const [values, setValues] = useState({ tenant: "local", user: "", groups: "", scopes: "", note: "", days: "" });
  const [error, setError] = useState(null);
  const input = (name) => (event) => setValues({ ...values, [name]: event.target.value });
  const words = (text) => text.split(/[\s,]+/).filter(Boolean);
  const create = async (event) => {
    event.preventDefault();
    const { tenant, user, groups, scopes, note, days } = values;
    const body = { tenant, groups: words(groups), scopes: words(scopes), note, ...(user && { user }), ...(days && { expires_in_days: Number(days) }) };
    try {
      done((await post("/keys", body)).key);
    } catch (problem) {
      setError(problem);
    }
  };
  const field = (name, label, rest = {}, hint = "") => html`<${Field} label=${label} hint=${hint}>${(id) => html`<input id=${id} value=${values[name]} onInput=${input(name)} ...${rest} />`}<//>`;
  return html`<${Dialog} title="New key" close=${close}><form onSubmit=${create}>
    <${Problem} error=${error} />
    ${field("tenant", "Tenant", { required: true })}
    ${field("user", "User", {}, "Needed where each user signs in to servers for themselves.")}
    ${field("groups", "Groups", { placeholder: "a, b" })}
    ${field("scopes", "Scopes", {}, "toolscout:operator lets its owner operate this gateway.")}
    ${field("note", "Note", { placeholder: "what it is for" })}
    ${field("days", "Expires in days", { type: "number", min: 1, max: 36500, placeholder: "never" })}
    <footer><button type="button" onClick=${close}>Cancel</button><button class="primary">Create</button></footer>
  </form><//>`;
}

function NewKey({ text, close }) {
  return html`<${Dialog} title="Your new key" close=${close}>
    <p>Copy it now: it is shown once.</p><${Copied} text=${text} label="the key" />
    <footer><button type="button" class="primary" onClick=${close}>Done</button></footer><//>`;
}

function PolicyCheck() {
  const [values, setValues] = useState({ key: "", user: "", tenant: "", groups: "" });
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const input = (name) => (event) => setValues({ ...values, [name]: event.target.value });
  const check = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      setFound(await get("/policy/check", { key: values.key, user: values.user, tenant: values.tenant, group: values.groups.split(/[\s,]+/).filter(Boolean) }));
    } catch (problem) {
      setError(problem);
    }
  };
  const verdict = (name, decision) => html`<span>${name} <${Badge} kind=${decision.allowed ? "ok" : "bad"}>${decision.allowed ? "yes" : "no"}<//> ${plain(decision.because)}</span>`;
  return html`<section aria-labelledby="check"><h2 id="check">What may somebody do?</h2>
    <form class="filters" onSubmit=${check}>
      <${Field} class="grow" label="Tool">${(id) => html`<input id=${id} required placeholder="server__tool" value=${values.key} onInput=${input("key")} />`}<//>
      <${Field} label="User">${(id) => html`<input id=${id} placeholder="nobody" value=${values.user} onInput=${input("user")} />`}<//>
      <${Field} label="Tenant">${(id) => html`<input id=${id} value=${values.tenant} onInput=${input("tenant")} />`}<//>
      <${Field} label="Groups">${(id) => html`<input id=${id} placeholder="a, b" value=${values.groups} onInput=${input("groups")} />`}<//>
      <button class="primary">Check</button>
    </form>
    <${Problem} error=${error} />
    ${found && html`<p class="facts card" role="status">${verdict("See:", found.see)}${verdict("Call:", found.call)}
      ${found.suggestions.length > 0 && html`<span>Did you mean ${found.suggestions.map(plain).join(", ")}?</span>`}</p>`}
  </section>`;
}
