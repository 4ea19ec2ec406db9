// Labelled rows: requests and the tools that are right for them. They are kept in this browser, and as a file of
// `toolscout eval` (queries.jsonl).
import { html, useState } from "../html.js";
import { post } from "../api.js";
import { kept, store } from "../store.js";
import { Action, Badge, Empty, Table, say } from "../ui.js";
import { count, plain } from "../text.js";

const PLACE = "toolscout-labelled";
const rows = store(numbered(kept(localStorage, PLACE, isRow)));
const FIGURES = {
  "ndcg@10": "order of the first ten",
  "recall@1": "right tool first",
  "recall@5": "right tools among five",
  "shown@5": "some right tool among five",
  mrr: "mean reciprocal rank",
  declined: "nothing-fits requests called weak",
  strong_right: "strong first hits that are right",
  p50_ms: "median, in ms",
};

function isRow(row) {
  return typeof row?.query === "string" && [row.gold, row.also ?? []].every((keys) => Array.isArray(keys) && keys.every((key) => typeof key === "string"));
}

// Gives an id to each row that has none, or one that a row before it has.
function numbered(list) {
  const taken = new Set(list.map((row) => row.id).filter((id) => id !== undefined).map(String));
  const seen = new Set();
  let next = 0;
  return list.map((row) => {
    let id = row.id === undefined ? "" : String(row.id);
    while (!id || seen.has(id)) {
      next += 1;
      id = taken.has(String(next)) ? "" : String(next);
    }
    seen.add(id);
    return { ...row, id };
  });
}

function keep(next) {
  rows.set(numbered(next));
  try {
    localStorage.setItem(PLACE, JSON.stringify(rows.get()));
  } catch {
    say("This browser keeps no more rows. Download them.", "bad");
  }
}

export function saveRow({ query, gold }) {
  keep([...rows.get().filter((row) => row.query !== query), { query, gold }]);
}

export function LabelledSet({ ranker }) {
  const set = rows.use();
  const [result, setResult] = useState(null);
  const run = async () => setResult(await post("/eval", { rows: set, ...(ranker && { ranker }) }));
  const download = () => {
    const text = set.map((row) => `${JSON.stringify(row)}\n`).join("");
    const url = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    const anchor = Object.assign(document.createElement("a"), { href: url, download: "queries.jsonl" });
    anchor.click();
    URL.revokeObjectURL(url);
  };
  const load = async (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // so that the same file can be loaded again
    const text = await file.text();
    try {
      const read = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
      if (!read.every(isRow)) throw new SyntaxError();
      keep([...set, ...read.map(({ id, query, gold, also }) => ({ id, query, gold, ...(also && { also }) }))]);
    } catch {
      say("This is no queries.jsonl.", "bad");
    }
  };
  const outcome = (id) => result?.rows.find((row) => row.id === id);
  return html`<div class="bar">
      <${Action} kind="primary" act=${run} disabled=${!set.length}>Run ${count(set.length, "row")}<//>
      <button type="button" onClick=${download} disabled=${!set.length}>Download</button>
      <label class="button">Load a file<input type="file" class="hidden" accept=".jsonl,.json,.txt" onChange=${load} /></label>
    </div>
    ${result && html`<dl class="tiles figures">${Object.entries(FIGURES).filter(([name]) => name in result.figures).map(([name, title]) => html`
      <div class="tile"><dd><strong>${result.figures[name]}</strong></dd><dt>${name}: ${title}</dt></div>`)}</dl>`}
    ${!set.length ? html`<${Empty} title="No labelled rows yet">Search for something, tick the right hits, and save them as a row.<//>`
      : html`<${Table} label="Labelled rows" head=${["Request", "Right tools", "Rank", "First hit", "Remove"]}>
      ${set.map((row) => html`<tr key=${row.id}>
        <td>${plain(row.query)}</td>
        <td class="key">${row.gold.map(plain).join(", ") || "nothing fits"}</td>
        <td>${outcome(row.id) && row.gold.length > 0 && html`<${Badge} kind=${outcome(row.id).rank === 1 ? "ok" : outcome(row.id).rank ? "warn" : "bad"}>${outcome(row.id).rank ?? "not found"}<//>`}</td>
        <td class="key">${plain(outcome(row.id)?.first)}</td>
        <td><button type="button" class="small quiet" aria-label=${`Remove ${row.query}`} onClick=${() => keep(set.filter((item) => item !== row))}>\u2715</button></td>
      </tr>`)}<//>`}`;
}
