CREATE TABLE records (
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, name, tenant, owner)
);
