// The servers: their state, why, and the button that helps.
import { html, useState } from "../html.js";
import { get, part, post, put, remove, send } from "../api.js";
import * as live from "../live.js";
import { link, replace, route } from "../router.js";
import { me } from "../session.js";
import { useLoad } from "../store.js";
import { Action, Badge, Confirm, Dialog, Empty, Field, Header, Loaded, Problem, say } from "../ui.js";
import { age, count, plain } from "../text.js";
import { AddServer } from "./add-server.js";

const STATES = {
  ready: { title: "ready", kind: "ok" },
  connecting: { title: "connecting", kind: "" },
  needs_login: { title: "sign-in needed", kind: "warn" },
  failed: { title: "down", kind: "bad" },
  disabled: { title: "disabled", kind: "" },
};
const ORDER = ["failed", "needs_login", "connecting", "ready", "disabled"];

// Those that need somebody come first.
function place(server) {
  return server.state === "ready" && server.waiting > 0 ? ORDER.indexOf("connecting") : ORDER.indexOf(server.state);
}

export function Servers() {
  const { operator } = me.use();
  const { parameters } = route.use();
  const servers = live.servers.use();
  const [adding, setAdding] = useState(Boolean(parameters.add));
  const sorted = [...(servers || [])].sort((a, b) => place(a) - place(b) || (a.key < b.key ? -1 : 1));
  return html`<${Header} title="Servers">
      ${operator && html`<button type="button" class="primary" onClick=${() => setAdding(true)}>Add server</button>`}
    <//>
    ${servers === null && html`<p class="loading" role="status">Loading\u2026</p>`}
    ${servers?.length === 0 && html`<${Empty} title="No servers yet">
      ${operator ? "Add one here, or run toolscout import to take over those of your agent hosts." : "The operator of this gateway has not added any."}<//>`}
    <ul class="cards">${sorted.map((server) => html`<${Server} key=${server.key} server=${server} chosen=${parameters.server === server.key} />`)}</ul>
    ${adding && html`<${AddServer} close=${() => { setAdding(false); replace("servers"); }} />`}`;
}

function Server({ server, chosen }) {
  const { operator, user } = me.use();
  const [open, setOpen] = useState("");
  const state = STATES[server.state];
  const act = (name) => () => post(`/servers/${part(server.key)}/${name}`);
  const reason = server.state === "ready" || server.state === "disabled" ? "" : server.detail;
  return html`<li class="card server ${state.kind} ${chosen ? "chosen" : ""}" aria-label=${server.title}>
    <div class="server-head">
      <h2>${plain(server.title)}</h2><${Badge} kind=${state.kind}>${state.title}<//>
      <span class="where">${plain(server.command || server.transport || "")}</span>
    </div>
    <p class="facts">
      <a href=${link("tools", { server: server.key })}>${count(server.tools, "tool")}</a>
      ${server.protocol && html`<span>MCP ${plain(server.protocol)}</span>`}
      ${server.since > 0 && html`<span>${state.title} for ${age(server.since)}</span>`}
      ${operator && server.trusted === false && html`<span>untrusted</span>`}
      ${server.waiting > 0 && html`<span>${count(server.waiting, "definition")} to decide about</span>`}
      ${server.per_user && html`<span>each user has an account</span>`}
    </p>
    ${reason && html`<p class="reason">${plain(reason)}</p>`}
    ${server.hint && server.state !== "ready" && html`<p class="hint">${plain(server.hint)}</p>`}
    ${!operator && server.users_sign_in && user && html`<div class="buttons"><${SignInAt} server=${server} /></div>`}
    ${operator && html`<div class="buttons">
      ${server.users_sign_in && user && html`<${SignInAt} server=${server} />`}
      <${Remedy} server=${server} act=${act} />
      ${server.state === "ready" && html`<${Action} class="small" act=${act("refresh")} done="The tools are listed again.">Refresh<//>`}
      ${server.state !== "disabled" && server.state !== "failed" && html`<${Action} class="small" act=${act("restart")} done="The server is restarted.">Restart<//>`}
      <button type="button" class="small" onClick=${() => setOpen("log")}>Log</button>
      <button type="button" class="small" onClick=${() => setOpen("edit")}>Edit</button>
      ${server.state !== "disabled" && html`<${Action} class="small" act=${act("disable")}>Disable<//>`}
      <button type="button" class="small danger" onClick=${() => setOpen("remove")}>Remove</button>
    </div>`}
    ${open === "log" && html`<${Log} server=${server} close=${() => setOpen("")} />`}
    ${open === "edit" && html`<${Edit} server=${server} close=${() => setOpen("")} />`}
    ${open === "remove" && html`<${Confirm} title=${`Remove ${server.title}?`} action="Remove" close=${() => setOpen("")}
      text="It leaves the config file. Its tools, and the accounts of people at it, are removed too."
      act=${() => remove(`/servers/${part(server.key)}`)} />`}
  </li>`;
}

// The one button that most likely helps.
function Remedy({ server, act }) {
  if (server.state === "failed") return html`<${Action} kind="primary small" act=${act("restart")} done="Trying again.">Try again<//>`;
  if (server.state === "disabled") return html`<${Action} kind="primary small" act=${act("enable")}>Enable<//>`;
  if (server.state === "needs_login" && !server.users_sign_in) return html`<${SignInAt} server=${server} />`;
  if (server.waiting > 0) return html`<a class="button primary small" href=${link("approvals", { server: server.key })}>Approve</a>`;
  return null;
}

function SignInAt({ server }) {
  const leave = async () => {
    const { link } = await (await send("POST", `/console/sign-in/${part(server.key)}`)).json();
    location.assign(link);
  };
  return html`<${Action} kind=${server.state === "needs_login" ? "primary small" : "small"} act=${leave}>${server.users_sign_in ? "Sign in for yourself" : "Sign in"}<//>`;
}

function Log({ server, close }) {
  const state = useLoad((signal) => get(`/servers/${part(server.key)}/log`, {}, signal), []);
  return html`<${Dialog} wide title=${`Log of ${server.title}`} close=${close}>
    <${Loaded} state=${state}>${({ text }) => (text ? html`<pre class="log" tabindex="0">${plain(text)}</pre>` : html`<p>It printed nothing on its standard error.</p>`)}<//>
    <footer><button type="button" onClick=${state.reload}>Read again</button></footer>
  <//>`;
}

function Edit({ server, close }) {
  const state = useLoad((signal) => get(`/servers/${part(server.key)}`, {}, signal), []);
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  const shown = text ?? JSON.stringify(state.data?.entry, null, 2);
  const save = async (event) => {
    event.preventDefault();
    try {
      await put(`/servers/${part(server.key)}`, { entry: JSON.parse(shown) });
      say(`${server.title} was changed.`);
      close();
    } catch (problem) {
      setError(problem instanceof SyntaxError ? { message: "This is not JSON.", hint: problem.message } : problem);
    }
  };
  return html`<${Dialog} wide title=${`Edit ${server.title}`} close=${close}>
    <${Loaded} state=${state}>${(data) => data.entry
      ? html`<form onSubmit=${save}>
        <${Problem} error=${error} />
        <${Field} label="Entry in ${plain(data.source)}" hint="Values that are secret are shown as ***. Leave them, and they stay as they are.">
          ${(id) => html`<textarea id=${id} class="code" rows="14" spellcheck=${false} value=${shown} onInput=${(event) => setText(event.target.value)}></textarea>`}
        <//>
        <footer><button type="button" onClick=${close}>Cancel</button><button class="primary">Save</button></footer>
      </form>`
      : html`<p>This server is not in a JSON file that can be changed here.</p>`}<//>
  <//>`;
}
