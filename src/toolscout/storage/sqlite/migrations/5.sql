CREATE TABLE gone_pins (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    since REAL NOT NULL,
    PRIMARY KEY (tenant, owner, name)
) WITHOUT ROWID;
