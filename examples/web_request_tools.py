"""A web app whose tools depend on the user: each user's saved queries are tools that only this user sees.

Run it with `python examples/web_request_tools.py`. MCP is served at http://127.0.0.1:8000/mcp. A bearer token
identifies the user. A real app would verify it with its identity provider.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from mcp.server.mcpserver import MCPServer
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from toolscout import RequestProvidersMiddleware, ToolMetadata, ToolNotFoundError, ToolRegistry

USERS = {"token-of-ann": "ann", "token-of-bob": "bob"}
SAVED = {  # user -> name of the query -> what it is for, and its SQL
    "ann": {
        "unpaid_invoices": ("Invoices that nobody has paid yet", "SELECT name, amount FROM invoices WHERE paid = 0")
    },
    "bob": {"sales_total": ("Sum of all invoices", "SELECT sum(amount) FROM invoices")},
}

database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("CREATE TABLE invoices (name TEXT, amount INTEGER, paid INTEGER)")
database.executemany("INSERT INTO invoices VALUES (?, ?, ?)", [("desk", 300, 1), ("lamp", 40, 0), ("chair", 120, 0)])


class SavedQueries:
    """One user's saved queries, as tools."""

    def __init__(self, user: str) -> None:
        """Take the queries of this user."""
        self.queries = SAVED[user]

    def list_tool_metadata(self) -> Iterable[ToolMetadata]:
        """Return name and description of each query, for the search."""
        return [ToolMetadata(name=name, description=text) for name, (text, _) in self.queries.items()]

    def get_tool(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition of a query, which takes no arguments."""
        if name not in self.queries:
            return None
        return {"name": name, "description": self.queries[name][0], "inputSchema": {"type": "object"}}

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a query."""
        if name not in self.queries:
            raise ToolNotFoundError(f"no query is named {name!r}")
        return {"rows": database.execute(self.queries[name][1]).fetchall()}


def queries_of(connection: HTTPConnection) -> SavedQueries | None:
    """Return the tools of the user who sent this request."""
    user = USERS.get(connection.headers.get("authorization", "").removeprefix("Bearer "))
    return SavedQueries(user) if user else None


server = MCPServer("invoices")
registry = ToolRegistry()


@registry.tool(keywords=["count", "how many"])
def count_invoices() -> int:
    """Count the invoices."""
    return int(database.execute("SELECT count(*) FROM invoices").fetchone()[0])


@server.custom_route("/health", methods=["GET"])
async def health(_request: Request) -> Response:
    """Say that the app is alive."""
    return JSONResponse({"status": "ok"})


registry.attach(server)
app = server.streamable_http_app()
app.add_middleware(RequestProvidersMiddleware, derive=queries_of)

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app)
