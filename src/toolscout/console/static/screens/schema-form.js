// A form made from a JSON schema. What it has no field for is written as JSON. The gateway checks all of it.
import { html, useState } from "../html.js";
import { Field } from "../ui.js";
import { plain } from "../text.js";

const DEEPEST = 20;

export function SchemaForm({ schema, values, change }) {
  const properties = Object.entries(schema?.properties || {});
  const required = new Set(schema?.required || []);
  if (!properties.length) return html`<p class="quiet-line">This tool takes no arguments.</p>`;
  return properties.map(([name, item]) => html`<${Property} key=${name} name=${name} schema=${fieldSchema(item, schema)} required=${required.has(name)}
    value=${values[name]} change=${(value) => change({ ...values, [name]: value })} />`);
}

function Property({ name, schema, required, value, change }) {
  const kind = kindOf(schema);
  const label = html`<span class="key">${plain(name)}</span>${required && html`<span class="required"> required</span>`}`;
  const input = {
    choice: (id) => html`<select id=${id} required=${required} value=${value === undefined ? "" : JSON.stringify(value)} onChange=${(event) => change(event.target.value ? JSON.parse(event.target.value) : undefined)}>
      <option value=""></option>${schema.enum?.map((item) => html`<option value=${JSON.stringify(item)}>${plain(String(item))}</option>`)}</select>`,
    boolean: (id) => html`<select id=${id} required=${required} value=${value === undefined ? "" : String(value)} onChange=${(event) => change(event.target.value ? event.target.value === "true" : undefined)}>
      <option value=""></option><option value="true">true</option><option value="false">false</option></select>`,
    number: (id) => html`<input id=${id} type="number" step=${schema.type === "integer" ? 1 : "any"} min=${schema.minimum} max=${schema.maximum} required=${required} value=${value ?? ""}
      onInput=${(event) => change(event.target.value === "" ? undefined : Number(event.target.value))} />`,
    text: (id) => html`<textarea id=${id} rows=${String(value ?? "").length > 60 ? 4 : 1} required=${required} value=${value ?? ""} onInput=${(event) => change(event.target.value || undefined)}></textarea>`,
    list: (id) => html`<textarea id=${id} rows="2" required=${required} placeholder="one a line" value=${(value || []).join("\n")}
      onInput=${(event) => change(event.target.value ? event.target.value.split("\n") : undefined)}></textarea>`,
    json: (id) => html`<${Json} id=${id} required=${required} value=${value} change=${change} />`,
  }[kind];
  return html`<${Field} label=${label} hint=${plain(schema.description)}>${input}<//>`;
}

// Any other value. While it is not yet JSON, the browser does not send the form.
function Json({ id, required, value, change }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const input = (event) => {
    setText(event.target.value);
    try {
      change(event.target.value.trim() ? JSON.parse(event.target.value) : undefined);
      event.target.setCustomValidity("");
    } catch {
      event.target.setCustomValidity("Write JSON.");
    }
  };
  return html`<textarea id=${id} class="code" rows="3" placeholder="JSON" spellcheck=${false} required=${required} value=${text} onInput=${input}></textarea>`;
}

// The schema of one field without detours: a local $ref is followed, and what may also be null is taken without null.
export function fieldSchema(schema, root, seen = []) {
  if (typeof schema !== "object" || schema === null || seen.length > DEEPEST) return {};
  const { $ref: reference, ...own } = schema;
  if (typeof reference === "string") {
    const target = seen.includes(reference) ? {} : at(root, reference);
    return fieldSchema({ ...target, ...own }, root, [...seen, reference]);
  }
  for (const name of ["anyOf", "oneOf", "allOf"]) {
    const options = Array.isArray(schema[name]) ? schema[name].filter((option) => option?.type !== "null") : [];
    if (options.length === 1) {
      const { [name]: choice, ...rest } = schema;
      return fieldSchema({ ...options[0], ...rest }, root, [...seen, name]);
    }
  }
  const kinds = [schema.type].flat().filter((kind) => kind !== "null");
  const items = schema.items && { items: fieldSchema(schema.items, root, [...seen, "items"]) };
  return { ...schema, ...(kinds.length === 1 && { type: kinds[0] }), ...items };
}

// What stands at a place of a schema such as `#/$defs/state`.
function at(root, reference) {
  if (!reference.startsWith("#/")) return {};
  let value = root;
  for (const name of reference.slice(2).split("/")) {
    const part = decoded(name).replaceAll("~1", "/").replaceAll("~0", "~");
    value = typeof value === "object" && value !== null && Object.hasOwn(value, part) ? value[part] : {};
  }
  return value;
}

function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function kindOf(schema) {
  if (Array.isArray(schema.enum)) return "choice";
  if (schema.type === "boolean") return "boolean";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.type === "string") return "text";
  if (schema.type === "array" && schema.items?.type === "string") return "list";
  return "json";
}

// What a form begins with: an example of the tool, else the defaults of its schema.
export function initial(schema, example) {
  if (example && typeof example === "object") return { ...(example.arguments || example) };
  const properties = Object.entries(schema?.properties || {});
  return Object.fromEntries(properties.filter(([, item]) => item?.default !== undefined).map(([name, item]) => [name, item.default]));
}

// The arguments to send: fields that were left empty are not.
export function prune(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
