// Signing in: with an API key, at the issuer, or with a link that the gateway or `toolscout console` prints.
import { html, useEffect, useState } from "./html.js";
import { proof, send } from "./api.js";
import { Action, Field, Problem } from "./ui.js";

export function SignIn({ signedIn, goOn }) {
  const [ways, setWays] = useState(null);
  const [key, setKey] = useState("");
  const [error, setError] = useState(null);
  useEffect(() => {
    document.title = "Sign in \u00b7 Toolscout";
    send("GET", "/console/session").then(async (response) => setWays(await response.json()), setError);
  }, []);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await send("POST", "/console/session", { body: { proof: proof() }, headers: { Authorization: `Bearer ${key.trim()}` } });
      setKey("");
      await signedIn();
    } catch (refused) {
      if (refused.status === 401) refused.message = "This key is not valid.";
      setError(refused);
    }
  };
  const leave = async () => {
    const { link } = await (await send("POST", "/console/login", { body: { proof: proof() } })).json();
    location.assign(link);
  };
  return html`<main class="sign-in">
    <h1><span class="logo" aria-hidden="true"></span>Toolscout</h1>
    <${Problem} error=${error} />
    ${ways && !ways.key && html`<p>Open the link that <code>toolscout serve</code> printed, or run:</p><pre>toolscout console</pre>
      <button type="button" onClick=${goOn}>Go on without operating</button>`}
    ${ways?.issuer && html`<${Action} kind="primary" act=${leave}>Sign in at ${new URL(ways.issuer).host}<//><p class="or">or</p>`}
    ${ways?.key && html`<form onSubmit=${enter}>
      <${Field} label="API key or token" hint="An operator makes keys with toolscout keys create.">
        ${(id) => html`<input id=${id} type="password" autocomplete="off" required value=${key} onInput=${(event) => setKey(event.target.value)} />`}
      <//>
      <button class=${ways.issuer ? "" : "primary"}>Sign in</button>
    </form>`}
  </main>`;
}
