// The address behind the `#` says which screen is shown, and with what: `#/tools?server=github`.
import { store } from "./store.js";

function read() {
  const [, name, query] = /^#\/([a-z-]*)\??(.*)$/.exec(location.hash) || [null, "", ""];
  return { name: name || "overview", parameters: Object.fromEntries(new URLSearchParams(query)) };
}

export const route = store(read());
addEventListener("hashchange", () => route.set(read()));

export function link(name, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  return `#/${name}${query.size ? `?${query}` : ""}`;
}

export function go(name, parameters) {
  location.hash = link(name, parameters);
}

// Changes the parameters of the screen that is shown, without a step in the browser's history.
export function replace(name, parameters) {
  history.replaceState(null, "", link(name, parameters));
}
