// The frame of the page: signing in, the navigation, and the screen that the address names.
import { html, render, useEffect, useState } from "./html.js";
import { get, proof, send } from "./api.js";
import { Icon } from "./icons.js";
import * as live from "./live.js";
import { link, route } from "./router.js";
import { me, refresh, totals } from "./session.js";
import { SignIn } from "./sign-in.js";
import { Toasts, say } from "./ui.js";
import { plain } from "./text.js";
import { Access } from "./screens/access.js";
import { ActivityScreen } from "./screens/activity.js";
import { Approvals } from "./screens/approvals.js";
import { Connect } from "./screens/connect.js";
import { Overview } from "./screens/overview.js";
import { SearchLab } from "./screens/search.js";
import { Servers } from "./screens/servers.js";
import { Tools } from "./screens/tools.js";
import { TryTool } from "./screens/try.js";

const SCREENS = {
  overview: { title: "Overview", view: Overview },
  servers: { title: "Servers", view: Servers },
  tools: { title: "Tools", view: Tools },
  search: { title: "Search lab", view: SearchLab },
  try: { title: "Try a tool", view: TryTool },
  activity: { title: "Activity", view: ActivityScreen, operator: true },
  approvals: { title: "Approvals", view: Approvals, operator: true },
  access: { title: "Access", view: Access, operator: true },
  connect: { title: "Connect", view: Connect },
};

// While servers connect, the catalogue changes many times in a moment.
const SETTLE_MS = 300;
const THEMES = { system: "Auto", light: "Light", dark: "Dark" };

function Page() {
  const [state, setState] = useState("starting");
  const enter = () => {
    setState("in");
    live.start();
  };
  // Where nobody needs a key, the local user may also go on without a session, which makes them the operator.
  const load = async ({ asAnyone = false } = {}) => {
    try {
      const session = await (await send("GET", "/console/session")).json();
      if (!session.signed_in && !asAnyone) return setState("out");
      me.set(await get("/caller"));
      enter();
    } catch (error) {
      if (error.status !== 401) say(error.message, "bad");
      setState("out");
    }
  };
  useEffect(() => {
    const signedOut = () => {
      live.stop();
      setState("out");
    };
    addEventListener("signed-out", signedOut);
    useLink().then(() => load());
    return () => removeEventListener("signed-out", signedOut);
  }, []);
  return html`
    ${state === "in" && html`<${Frame} out=${() => setState("out")} />`}
    ${state === "out" && html`<${SignIn} signedIn=${() => load()} goOn=${() => load({ asAnyone: true })} />`}
    <${Toasts} />`;
}

// The one-time token of the address, if it has one. It is read, and taken out of the address, before anything is drawn.
const token = new URLSearchParams(location.hash.slice(1)).get("sign-in");
if (token) history.replaceState(null, "", "#/overview");

async function useLink() {
  if (!token) return;
  try {
    await send("POST", "/console/session", { body: { proof: proof(), token } });
  } catch (error) {
    say(`${error.message}. ${error.hint || ""}`, "bad");
  }
}

function Frame({ out }) {
  const { name } = route.use();
  const who = me.use();
  const { changes_waiting: waiting } = totals.use();
  const generation = live.catalogue.use()?.generation;
  const [open, setOpen] = useState(false);
  const screens = Object.entries(SCREENS).filter(([, screen]) => who.operator || !screen.operator);
  const { view: View } = Object.fromEntries(screens)[name] || SCREENS.overview;
  useEffect(() => {
    const timer = setTimeout(refresh, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [generation]);
  useEffect(() => {
    setOpen(false);
    document.querySelector("main")?.scrollTo(0, 0);
  }, [name]);
  return html`<div class="frame ${open ? "open" : ""}">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to content</a>
    <header class="side">
      <div class="brand"><a href="#/overview"><span class="logo" aria-hidden="true"></span>Toolscout</a>
        <button type="button" class="menu quiet" aria-expanded=${open} aria-controls="navigation" onClick=${() => setOpen(!open)}>Menu</button>
      </div>
      <nav id="navigation" aria-label="Screens">
        ${screens.map(([key, screen]) => html`<a href=${link(key)} aria-current=${key === name ? "page" : undefined}>
          <${Icon} name=${key} />${screen.title}
          ${key === "approvals" && waiting > 0 && html`<span class="count" aria-label="${waiting} waiting">${waiting}</span>`}
        </a>`)}
      </nav>
      <${Who} out=${out} />
    </header>
    <main id="main" tabindex="-1"><${Offline} /><${View} key=${name} /></main>
  </div>`;
}

function Offline() {
  if (live.connected.use()) return null;
  return html`<div class="notice warn" role="status"><strong>The gateway does not answer.</strong><span>What you see may be old. Trying again\u2026</span></div>`;
}

function Who({ out }) {
  const who = me.use();
  const [theme, setTheme] = useState(document.documentElement.dataset.theme);
  const choose = (event) => {
    setTheme(event.target.value);
    document.documentElement.dataset.theme = event.target.value;
    localStorage.setItem("toolscout-theme", event.target.value);
  };
  const signOut = async () => {
    await send("DELETE", "/console/session");
    live.stop();
    out();
  };
  return html`<div class="who">
    <p><strong>${plain(who.user || "Local user")}</strong><span>${plain(who.tenant)} \u00b7 ${who.operator ? "operator" : "user"}</span></p>
    <select aria-label="Theme" value=${theme} onChange=${choose}>
      ${Object.entries(THEMES).map(([value, title]) => html`<option value=${value}>${title}</option>`)}
    </select>
    <button type="button" class="small" onClick=${signOut}>Sign out</button>
  </div>`;
}

render(html`<${Page} />`, document.getElementById("app"));
