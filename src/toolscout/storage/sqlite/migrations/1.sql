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
