-- Small things beside the catalogue, such as keys and pins; a tenant's own, behind the same wall.
CREATE TABLE records (
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, tenant, owner, name)
);
CREATE INDEX records_by_name ON records (kind, name);
ALTER TABLE records ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON records USING (tenant = nullif(current_setting('toolscout.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON records TO toolscout_app;

CREATE FUNCTION records_of_all(wanted text, first text, last text)
RETURNS TABLE (tenant text, owner text, name text, body text) AS $$
    SELECT tenant, owner, name, body FROM records
    WHERE kind = wanted AND name >= first AND name <= last ORDER BY name, tenant, owner
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;
REVOKE ALL ON FUNCTION records_of_all(text, text, text) FROM public;
GRANT EXECUTE ON FUNCTION records_of_all(text, text, text) TO toolscout_app;
