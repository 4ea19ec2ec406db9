// The agent hosts, and how each is told about a server at an address.

const json = (value) => JSON.stringify(value, null, 2);
const bearer = (key) => (key ? { Authorization: `Bearer ${key}` } : null);

// The entry that most hosts take, with the name that each gives the address.
function entry(section, fields, at = "url") {
  return (url, key) => {
    const headers = bearer(key);
    return json({ [section]: { toolscout: { ...fields, [at]: url, ...(headers && { headers }) } } });
  };
}

// For hosts that only start commands: a bridge from npm, which passes the header on.
function bridge(section) {
  return (url, key) => json({
    [section]: { toolscout: { command: "npx", args: ["-y", "mcp-remote", url, ...(key ? ["--header", `Authorization:Bearer ${key}`] : [])] } },
  });
}

export const HOSTS = [
  {
    name: "claude-code", title: "Claude Code", file: "~/.claude.json", project: ".mcp.json", imported: true,
    config: entry("mcpServers", { type: "http" }),
    command: (url, key) => `claude mcp add --transport http toolscout ${url}${key ? ` --header "Authorization: Bearer ${key}"` : ""}`,
  },
  { name: "claude-desktop", title: "Claude Desktop", file: "claude_desktop_config.json", imported: true, config: bridge("mcpServers"), note: "Claude Desktop starts commands only, so a bridge from npm goes between. Without it, let it start toolscout serve itself." },
  { name: "cursor", title: "Cursor", file: "~/.cursor/mcp.json", project: ".cursor/mcp.json", imported: true, config: entry("mcpServers", {}) },
  { name: "vscode", title: "VS Code", file: "mcp.json of your profile", project: ".vscode/mcp.json", imported: true, config: entry("servers", { type: "http" }) },
  { name: "windsurf", title: "Windsurf", file: "~/.codeium/windsurf/mcp_config.json", imported: true, config: entry("mcpServers", {}, "serverUrl") },
  { name: "gemini", title: "Gemini CLI", file: "~/.gemini/settings.json", project: ".gemini/settings.json", imported: true, config: entry("mcpServers", {}, "httpUrl") },
  {
    name: "codex", title: "Codex", file: "~/.codex/config.toml", project: ".codex/config.toml", imported: true,
    config: (url, key) => `[mcp_servers.toolscout]\nurl = "${url}"\n${key ? 'bearer_token_env_var = "TOOLSCOUT_KEY"\n' : ""}`,
    note: "Codex takes a key from the environment: set TOOLSCOUT_KEY to it.",
  },
  { name: "kiro", title: "Kiro", file: "~/.kiro/settings/mcp.json", project: ".kiro/settings/mcp.json", imported: true, config: entry("mcpServers", {}) },
  { name: "zed", title: "Zed", file: "~/.config/zed/settings.json", project: ".zed/settings.json", imported: true, config: entry("context_servers", {}) },
  { name: "cline", title: "Cline", file: "cline_mcp_settings.json", imported: true, config: entry("mcpServers", { type: "streamableHttp" }) },
  { name: "roo", title: "Roo Code", file: "mcp_settings.json", project: ".roo/mcp.json", imported: true, config: entry("mcpServers", { type: "streamable-http" }) },
  { name: "copilot", title: "Copilot CLI", file: "~/.copilot/mcp-config.json", imported: true, config: entry("mcpServers", { type: "http", tools: ["*"] }) },
  { name: "opencode", title: "OpenCode", file: "~/.config/opencode/opencode.json", project: "opencode.json", imported: true, config: entry("mcp", { type: "remote", enabled: true }) },
  { name: "qwen", title: "Qwen Code", file: "~/.qwen/settings.json", project: ".qwen/settings.json", imported: true, config: entry("mcpServers", {}, "httpUrl") },
  { name: "lmstudio", title: "LM Studio", file: "~/.lmstudio/mcp.json", imported: true, config: entry("mcpServers", {}) },
  {
    name: "goose", title: "Goose", file: "~/.config/goose/config.yaml", imported: true,
    config: (url, key) => `extensions:\n  toolscout:\n    enabled: true\n    type: streamable_http\n    name: toolscout\n    uri: ${url}\n${key ? `    headers:\n      Authorization: Bearer ${key}\n` : ""}`,
  },
  {
    name: "continue", title: "Continue", file: "~/.continue/config.yaml", imported: true,
    config: (url, key) => `mcpServers:\n  - name: toolscout\n    type: streamable-http\n    url: ${url}\n${key ? `    requestOptions:\n      headers:\n        Authorization: Bearer ${key}\n` : ""}`,
  },
  { name: "other", title: "Another host", file: "its list of MCP servers", config: entry("mcpServers", { type: "http" }) },
];
