// What is up, what is used, and what needs somebody.
import { html, useEffect } from "../html.js";
import { get } from "../api.js";
import { CallTable } from "./activity.js";
import * as live from "../live.js";
import { link } from "../router.js";
import { me, refresh, totals } from "../session.js";
import { useLoad } from "../store.js";
import { Badge, Empty, Header, Loaded } from "../ui.js";
import { count, number, plain, short } from "../text.js";

const CALLS = 8;

export function Overview() {
  const who = me.use();
  const total = totals.use();
  const servers = live.servers.use() || [];
  const catalogue = live.catalogue.use();
  const categories = useLoad((signal) => get("/categories", {}, signal), [catalogue?.generation]);
  useEffect(() => {
    refresh();
  }, []);
  const up = servers.filter((item) => item.state === "ready").length;
  return html`<${Header} title="Overview" />
    <div class="tiles">
      <${Tile} href=${link("servers")} value=${`${up} of ${servers.length}`} label="servers up" />
      <${Tile} href=${link("tools")} value=${number(catalogue?.tools ?? total.tools)} label="tools" />
      ${total.calls && html`<${Tile} href=${link("activity")} value=${number(total.calls.last)} label=${total.calls.failed ? `calls, ${total.calls.failed} failed` : "calls"} />`}
      <${Tile} href=${link("search")} value=${short(total.tokens)} label="tokens kept out of each prompt" />
      ${total.tokens_saved > 0 && html`<${Tile} href=${link("activity")} value=${short(total.tokens_saved)} label="tokens saved since the start" />`}
    </div>
    <div class="columns">
      <section aria-labelledby="attention"><h2 id="attention">Needs attention</h2><${Attention} servers=${servers} /></section>
      <section aria-labelledby="categories"><h2 id="categories">What the tools are for</h2>
        <${Loaded} state=${categories}>${({ categories: items }) => html`<${Categories} items=${items} />`}<//>
      </section>
    </div>
    ${who.operator && html`<${Recent} />`}`;
}

function Tile({ href, value, label }) {
  return html`<a class="tile" href=${href}><strong>${value}</strong><span>${label}</span></a>`;
}

function Attention({ servers }) {
  const who = me.use();
  const { changes_waiting: waiting, stale } = totals.use();
  const items = servers
    .filter((item) => item.state === "failed" || item.state === "needs_login")
    .map((item) => ({
      href: link("servers", { server: item.key }),
      kind: item.state === "failed" ? "bad" : "warn",
      title: item.state === "failed" ? `${item.title} is down` : `${item.title} wants a sign-in`,
      text: item.hint || item.detail,
    }));
  if (waiting) {
    items.push({
      href: link("approvals"), kind: "warn", title: `${count(waiting, "definition")} to decide about`,
      text: "They changed, or contain text that could mislead a model.",
    });
  }
  if (stale) items.push({ href: link("servers"), kind: "bad", title: "The catalogue is old", text: "The store does not answer." });
  if (!servers.length && who.operator) {
    items.push({ href: link("servers", { add: "1" }), kind: "", title: "Add a server", text: "A command, an address, or the mcpServers block of another host." });
  }
  if (!items.length) return html`<p class="quiet-line">Nothing. Everything that is configured works.</p>`;
  return html`<ul class="rows">${items.map((item) => html`<li><a href=${item.href}>
    <span class="dot ${item.kind}" aria-hidden="true"></span><span><strong>${plain(item.title)}</strong><small>${plain(item.text)}</small></span></a></li>`)}</ul>`;
}

function Categories({ items }) {
  const shown = [...items].sort((a, b) => b.count - a.count).slice(0, 8);
  if (!shown.length) return html`<${Empty} title="No tools yet">They appear as soon as a server is connected.<//>`;
  const most = shown[0].count;
  return html`<ul class="bars">${shown.map((item) => html`<li><a href=${link("tools", { category: item.name })}>
    <span>${plain(item.name)}</span><meter min="0" max=${most} value=${item.count} aria-label=${`${item.name}: ${item.count}`}></meter><b>${number(item.count)}</b></a></li>`)}</ul>`;
}

function Recent() {
  const state = useLoad((signal) => get("/activity", { act: "call", page_size: CALLS }, signal), []);
  return html`<section aria-labelledby="recent"><h2 id="recent">Last calls <a href=${link("activity")}>all</a></h2>
    <${Loaded} state=${state}>${({ lines, recorded }) =>
      lines.length
        ? html`<${CallTable} lines=${lines} label="Last calls" />`
        : html`<p class="quiet-line">${recorded ? "No calls yet." : "No audit log is kept, so calls cannot be shown."}</p>`}<//>
  </section>`;
}
