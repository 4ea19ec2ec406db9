"""The SQLite schema as numbered migrations: applied in order, each in one transaction, never edited once released."""

from __future__ import annotations

import sqlite3

from toolscout.errors import SchemaVersionError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE catalogue (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        generation INTEGER NOT NULL,
        model_id TEXT NOT NULL
    );
    INSERT INTO catalogue VALUES (1, 0, '');
    CREATE TABLE servers (
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        title TEXT NOT NULL,
        trusted INTEGER NOT NULL,
        PRIMARY KEY (tenant, key)
    );
    CREATE TABLE tools (
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        owner TEXT NOT NULL,
        server TEXT NOT NULL,
        stamp TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        terms BLOB NOT NULL,
        facets TEXT NOT NULL,
        definition BLOB NOT NULL,
        PRIMARY KEY (tenant, key, owner),
        FOREIGN KEY (tenant, server) REFERENCES servers (tenant, key) ON DELETE CASCADE
    );
    CREATE INDEX tools_by_server ON tools (tenant, server);
    CREATE INDEX tools_by_text ON tools (text_hash);
    CREATE TABLE switches (
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        PRIMARY KEY (tenant, key)
    );
    CREATE TABLE vectors (
        model_id TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        added_at REAL NOT NULL,
        PRIMARY KEY (model_id, text_hash)
    );
    """,
    """
    CREATE TABLE scopes (
        tenant TEXT NOT NULL,
        owner TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (tenant, owner)
    );
    INSERT INTO scopes SELECT tenant, owner, (SELECT generation FROM catalogue)
        FROM (SELECT tenant, '' AS owner FROM servers UNION SELECT tenant, owner FROM tools);
    CREATE TABLE owned_servers (
        tenant TEXT NOT NULL,
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        title TEXT NOT NULL,
        trusted INTEGER NOT NULL,
        PRIMARY KEY (tenant, owner, key)
    );
    INSERT INTO owned_servers SELECT s.tenant, o.owner, s.key, s.title, s.trusted FROM servers s
        JOIN (SELECT tenant, '' AS owner, key FROM servers UNION SELECT tenant, owner, server FROM tools) o
        ON o.tenant = s.tenant AND o.key = s.key;
    CREATE TABLE owned_tools (
        tenant TEXT NOT NULL,
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        server TEXT NOT NULL,
        stamp TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        terms BLOB NOT NULL,
        facets TEXT NOT NULL,
        definition BLOB NOT NULL,
        PRIMARY KEY (tenant, owner, key),
        FOREIGN KEY (tenant, owner, server) REFERENCES owned_servers (tenant, owner, key) ON DELETE CASCADE
    );
    INSERT INTO owned_tools
        SELECT tenant, owner, key, server, stamp, text_hash, terms, facets, definition FROM tools;
    CREATE TABLE owned_switches (
        tenant TEXT NOT NULL,
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        PRIMARY KEY (tenant, owner, key)
    );
    INSERT INTO owned_switches SELECT tenant, '', key, enabled FROM switches;
    DROP TABLE tools;
    DROP TABLE servers;
    DROP TABLE switches;
    ALTER TABLE owned_servers RENAME TO servers;
    ALTER TABLE owned_tools RENAME TO tools;
    ALTER TABLE owned_switches RENAME TO switches;
    CREATE INDEX tools_by_server ON tools (tenant, owner, server);
    CREATE INDEX tools_by_text ON tools (text_hash);
    """,
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        until REAL NOT NULL
    );
    """,
    """
    CREATE TABLE records (
        kind TEXT NOT NULL,
        tenant TEXT NOT NULL,
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (kind, name, tenant, owner)
    );
    """,
)


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Bring the file to the newest schema; refuse one that a newer toolscout wrote."""
    if _version(connection) == len(MIGRATIONS):  # nothing to do, so nobody who is writing has to be waited for
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise SchemaVersionError(
                f"{where} has schema {version}, this toolscout knows schemas up to {len(MIGRATIONS)}",
                hint="upgrade toolscout, or name another file with --store",
            )
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in script.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
