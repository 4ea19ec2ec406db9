// How values are written. Texts of servers pass through `plain`, which shows characters that could mislead a reader.

const MISLEADING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

export function plain(text) {
  return String(text ?? "").replace(MISLEADING, (char) => {
    const code = char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `\u2039U+${code}\u203a`;
  });
}

export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function number(value) {
  return Number(value ?? 0).toLocaleString("en");
}

export function short(value) {
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value ?? 0);
}

export function age(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  const [size, unit] = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]].find(([size]) => past >= size) || [1, "s"];
  return `${Math.floor(past / size)} ${unit}`;
}

export function date(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "";
}

export function clock(iso) {
  return new Date(iso).toLocaleTimeString("en-GB");
}

export function duration(ms) {
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

export function bytes(size) {
  return size >= 1_048_576 ? `${(size / 1_048_576).toFixed(1)} MB` : size >= 1024 ? `${(size / 1024).toFixed(1)} kB` : `${size} B`;
}

export function pretty(value) {
  return plain(JSON.stringify(value, null, 2));
}
