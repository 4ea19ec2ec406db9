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
