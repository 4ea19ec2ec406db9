// Adding servers: from a command, from an address, or from the mcpServers block of another host.
import { html, useState } from "../html.js";
import { post } from "../api.js";
import { Dialog, Field, Problem, Tabs, say } from "../ui.js";

const WAYS = { command: "Command", address: "Address", block: "Paste a block" };
const EXAMPLE = `{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] }
  }
}`;

export function AddServer({ close }) {
  const [way, setWay] = useState("command");
  const [values, setValues] = useState({ name: "", command: "", env: "", url: "", headers: "", block: "" });
  const [error, setError] = useState(null);
  const input = (name) => (event) => setValues({ ...values, [name]: event.target.value });
  const add = async (event) => {
    event.preventDefault();
    try {
      const { changed } = await post("/servers", { mcpServers: entries(way, values) });
      say(`Added: ${changed.join(", ")}.`);
      close();
    } catch (problem) {
      setError(problem instanceof SyntaxError ? { message: "This is not JSON.", hint: problem.message } : problem);
    }
  };
  return html`<${Dialog} title="Add server" close=${close}>
    <${Tabs} label="How" tabs=${WAYS} chosen=${way} choose=${setWay} />
    <form onSubmit=${add}>
      <${Problem} error=${error} />
      ${way !== "block" && html`<${Field} label="Name" hint="It becomes the first part of the keys of its tools.">
        ${(id) => html`<input id=${id} required value=${values.name} onInput=${input("name")} />`}<//>`}
      ${way === "command" && html`
        <${Field} label="Command" hint="As in a terminal, without a shell: put an argument with spaces into quotes.">
          ${(id) => html`<input id=${id} class="code" required placeholder="npx -y @modelcontextprotocol/server-memory" value=${values.command} onInput=${input("command")} />`}<//>
        <${Field} label="Environment" hint="One NAME=value a line. Write \${env:NAME} for a variable of the gateway.">
          ${(id) => html`<textarea id=${id} class="code" rows="2" value=${values.env} onInput=${input("env")}></textarea>`}<//>`}
      ${way === "address" && html`
        <${Field} label="Address">${(id) => html`<input id=${id} class="code" type="url" required placeholder="https://mcp.example.com/mcp" value=${values.url} onInput=${input("url")} />`}<//>
        <${Field} label="Headers" hint="One Name: value a line. None are needed where people sign in.">
          ${(id) => html`<textarea id=${id} class="code" rows="2" value=${values.headers} onInput=${input("headers")}></textarea>`}<//>`}
      ${way === "block" && html`<${Field} label="mcpServers block" hint="From Claude, Cursor, VS Code or any other host.">
        ${(id) => html`<textarea id=${id} class="code" rows="9" required spellcheck=${false} placeholder=${EXAMPLE} value=${values.block} onInput=${input("block")}></textarea>`}<//>`}
      <footer><button type="button" onClick=${close}>Cancel</button><button class="primary">Add</button></footer>
    </form>
  <//>`;
}

function entries(way, values) {
  if (way === "block") {
    const block = JSON.parse(values.block);
    return block.mcpServers || block.servers || block;
  }
  if (way === "address") {
    const headers = pairs(values.headers, ":");
    return { [values.name]: { type: "http", url: values.url, ...(Object.keys(headers).length && { headers }) } };
  }
  const [command, ...args] = words(values.command);
  const env = pairs(values.env, "=");
  return { [values.name]: { command, args, ...(Object.keys(env).length && { env }) } };
}

// Splits a command line at spaces that are not in quotes.
export function words(line) {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

function pairs(text, separator) {
  const lines = text.split("\n").filter((line) => line.includes(separator));
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf(separator);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}
