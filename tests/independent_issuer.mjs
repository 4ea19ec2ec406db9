// The certified `oidc-provider` from npm as an authorization server for MCP servers: node independent_issuer.mjs PACKAGE PORT
import { pathToFileURL } from "node:url";

const [folder, port] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${folder}/lib/index.js`));
const users = new Set(["ann", "bob"]);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  scopes: ["openid", "offline_access", "tools:read", "tools:write"],
  pkce: { required: () => true },
  findAccount: (_, sub) => (users.has(sub) ? { accountId: sub, claims: () => ({ sub }) } : undefined),
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        audience: resource,
        scope: "tools:read tools:write",
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
      }),
    },
  },
});

provider.use(async (context, next) => {
  if (context.method !== "POST" || context.path !== "/control/users") return next();
  let body = "";
  for await (const chunk of context.req) body += chunk;
  users.add(JSON.parse(body).name);
  context.body = {};
});

provider.listen(Number(port), "127.0.0.1");
