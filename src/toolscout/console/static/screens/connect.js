// How each agent host is told about this gateway: what to put into which file, ready to copy.
import { html, useState } from "../html.js";
import { send } from "../api.js";
import { useLoad } from "../store.js";
import { Copied, Field, Header, Loaded } from "../ui.js";
import { HOSTS } from "./hosts.js";

export function Connect() {
  const [chosen, setChosen] = useState(HOSTS[0].name);
  const [key, setKey] = useState("");
  const ways = useLoad(async (signal) => (await send("GET", "/console/session", { signal })).json(), []);
  const host = HOSTS.find((item) => item.name === chosen);
  return html`<${Header} title="Connect" />
    <p>Point your agent host at this gateway. It then sees a few tools, with which it finds and calls all others.</p>
    <${Loaded} state=${ways}>${({ key: needsKey }) => html`
      <form class="filters" onSubmit=${(event) => event.preventDefault()}>
        <${Field} label="Host">${(id) => html`<select id=${id} value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
          ${HOSTS.map((item) => html`<option value=${item.name}>${item.title}</option>`)}</select>`}<//>
        ${needsKey && html`<${Field} class="grow" label="API key" hint="It stays in this page.">${(id) => html`<input id=${id} type="password" autocomplete="off" value=${key} onInput=${(event) => setKey(event.target.value)} />`}<//>`}
      </form>
      <section aria-labelledby="preview"><h2 id="preview">${host.title}</h2>
        <p>Put this into <code>${host.file}</code>${host.project && html`, or for one project into <code>${host.project}</code>`}:</p>
        <${Copied} text=${host.config(`${location.origin}/mcp`, needsKey ? key.trim() || "YOUR_KEY" : "")} label="the configuration" />
        ${host.command && html`<p>Or run:</p><${Copied} text=${host.command(`${location.origin}/mcp`, needsKey ? key.trim() || "YOUR_KEY" : "")} label="the command" />`}
        ${host.note && html`<p class="hint">${host.note}</p>`}
        ${host.imported && html`<p class="hint">The servers that ${host.title} has now can move behind this gateway: <code>toolscout import ${host.name}</code> shows what would change, with <code>--write</code> it is done, with <code>--undo</code> undone.</p>`}
      </section>`}<//>`;
}
