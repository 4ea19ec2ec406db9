// Requests to the REST API. An error is an ApiError with what the gateway says, and what to do about it.

const API = "/api/v1";
const PROOF = "toolscout-proof";

export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, hint: error.hint, suggestions: error.suggestions || [] });
  }
}

// What shows that a request comes from this page, and not from another site that the browser has open.
export function proof() {
  let text = localStorage.getItem(PROOF);
  if (!text) {
    text = Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    localStorage.setItem(PROOF, text);
  }
  return text;
}

export async function send(method, url, { body, headers, signal } = {}) {
  const all = { "X-Toolscout-Page": proof(), ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  const options = { method, headers: all, body: body === undefined ? undefined : JSON.stringify(body), signal };
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "offline", message: "The gateway does not answer.", hint: "Is it still running?" });
  }
  if (response.status === 401) window.dispatchEvent(new Event("signed-out"));
  if (!response.ok) throw new ApiError(response.status, await readError(response));
  return response;
}

async function readError(response) {
  try {
    const problem = await response.json();
    if (problem.error?.message) return problem.error;
    return { code: "error", message: problem.error_description || response.statusText, hint: "" };
  } catch {
    return { code: "error", message: `The gateway answers ${response.status}.`, hint: "" };
  }
}

function path(place, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const item of [value].flat()) if (item !== "" && item !== null && item !== undefined) query.append(name, item);
  }
  return `${API}${place}${query.size ? `?${query}` : ""}`;
}

const json = async (response) => (await response).json();

export const get = (place, parameters, signal) => json(send("GET", path(place, parameters), { signal }));
export const post = (place, body = {}, signal) => json(send("POST", path(place), { body, signal }));
export const put = (place, body) => json(send("PUT", path(place), { body }));
export const remove = (place) => json(send("DELETE", path(place)));
export const follow = (place, signal) => send("GET", path(place), { signal });
export const part = encodeURIComponent;
