// What happens now: the stream of events of the gateway. It is read with `fetch`, because an EventSource sends no proof.
import { useEffect } from "./html.js";
import { follow } from "./api.js";
import { store } from "./store.js";

const LONGEST_PAUSE_MS = 10_000;

export const servers = store(null);
export const catalogue = store(null);
export const connected = store(true);
const listeners = new Set();
let control = null;

export function useActivity(listener) {
  useEffect(() => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, [listener]);
}

export function stop() {
  control?.abort();
  control = null;
}

export async function start() {
  stop();
  control = new AbortController();
  const { signal } = control;
  for (let pause = 500; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      const response = await follow("/events", signal);
      connected.set(true);
      await read(response.body.getReader());
      pause = 250;
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      connected.set(false);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function read(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop();
    events.forEach(take);
  }
}

function take(event) {
  const match = /^event: (\w+)\ndata: (.*)$/s.exec(event);
  if (!match) return;
  const body = JSON.parse(match[2]);
  if (match[1] === "servers") servers.set(body.servers);
  else if (match[1] === "catalogue") catalogue.set(body);
  else if (match[1] === "activity") for (const listener of listeners) listener(body);
}
