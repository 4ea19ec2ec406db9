ALTER TABLE tools ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE switches ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tools_by_generation ON tools (tenant, owner, generation);
CREATE INDEX switches_by_generation ON switches (tenant, owner, generation);
