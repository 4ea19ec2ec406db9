// Who is signed in, and the totals of this gateway for them.
import { get } from "./api.js";
import { store } from "./store.js";

export const me = store(null);
export const totals = store({});

export async function refresh() {
  try {
    totals.set(await get("/stats"));
  } catch {
    // The frame shows that the gateway does not answer, or that nobody is signed in.
  }
}
