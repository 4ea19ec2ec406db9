CREATE SEQUENCE numbers;
CREATE TABLE catalogue (single boolean PRIMARY KEY CHECK (single), model_id text NOT NULL);
INSERT INTO catalogue VALUES (true, '');
CREATE TABLE tenants (
    tenant text COLLATE "C" PRIMARY KEY,
    in_database boolean NOT NULL DEFAULT false
);
CREATE TABLE scopes (
    tenant text COLLATE "C" NOT NULL REFERENCES tenants ON DELETE CASCADE,
    owner text COLLATE "C" NOT NULL,
    generation bigint NOT NULL DEFAULT 0,
    tools integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, owner)
);
CREATE INDEX scopes_by_generation ON scopes (generation);
CREATE TABLE servers (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    title bytea NOT NULL,
    trusted boolean NOT NULL,
    PRIMARY KEY (tenant, owner, key),
    FOREIGN KEY (tenant, owner) REFERENCES scopes ON DELETE CASCADE
);
CREATE TABLE tools (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    stamp text NOT NULL,
    text_hash bytea NOT NULL,
    terms bytea NOT NULL,
    facets bytea NOT NULL,
    definition bytea NOT NULL,
    PRIMARY KEY (tenant, owner, key),
    FOREIGN KEY (tenant, owner, server) REFERENCES servers ON DELETE CASCADE
);
CREATE INDEX tools_by_server ON tools (tenant, owner, server);
CREATE INDEX tools_by_text ON tools (text_hash, tenant);
CREATE TABLE switches (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    PRIMARY KEY (tenant, owner, key),
    FOREIGN KEY (tenant, owner) REFERENCES scopes ON DELETE CASCADE
);
CREATE TABLE models (
    model smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model_id text NOT NULL UNIQUE,
    dimension integer NOT NULL
);
CREATE TABLE vectors (
    model smallint NOT NULL REFERENCES models,
    text_hash bytea NOT NULL,
    vector halfvec NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model, text_hash)
);
ALTER TABLE vectors ALTER vector SET STORAGE PLAIN;
CREATE TABLE leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    until timestamptz NOT NULL,
    fence bigint NOT NULL DEFAULT 1
);
CREATE TABLE search_rows (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    model smallint NOT NULL,
    tokens integer NOT NULL,
    category bytea NOT NULL,
    category_id bigint NOT NULL,
    tags bigint[] NOT NULL,
    names text NOT NULL,
    terms bytea NOT NULL,
    words tsvector NOT NULL,
    embedding halfvec,
    UNIQUE (tenant, owner, key),
    FOREIGN KEY (tenant, owner) REFERENCES scopes ON DELETE CASCADE
) WITH (fillfactor = 85);
ALTER TABLE search_rows ALTER embedding SET STORAGE PLAIN, ALTER terms SET STORAGE MAIN, ALTER words SET STORAGE MAIN;
CREATE INDEX search_rows_words ON search_rows USING gin (words) WITH (fastupdate = on, gin_pending_list_limit = 256);
CREATE TABLE term_counts (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    tools integer NOT NULL,
    PRIMARY KEY (tenant, owner, lexeme, server)
);
CREATE TABLE summaries (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    category bytea NOT NULL,
    tools integer NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant, owner, server, category)
);

-- The second wall: what the application's role reads of a table is its tenant's, whatever a query forgets to say.
DO $$
DECLARE walled text;
BEGIN
    FOREACH walled IN ARRAY ARRAY['tenants', 'scopes', 'servers', 'tools', 'switches', 'search_rows', 'term_counts',
                                  'summaries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', walled);
        EXECUTE format($p$CREATE POLICY own_tenant ON %I
            USING (tenant = nullif(current_setting('toolscout.tenant', true), ''))$p$, walled);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO toolscout_app', walled);
    END LOOP;
END $$;
ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY through_a_tool ON vectors FOR SELECT
    USING (EXISTS (SELECT 1 FROM tools t WHERE t.text_hash = vectors.text_hash));
CREATE POLICY add ON vectors FOR INSERT WITH CHECK (true);
ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA toolscout TO toolscout_app;
GRANT SELECT, INSERT ON vectors, models TO toolscout_app;
GRANT SELECT ON schema_version TO toolscout_app;
GRANT SELECT, UPDATE ON catalogue TO toolscout_app;
GRANT USAGE ON SEQUENCE numbers TO toolscout_app;

-- The doors in it: what cannot be a tenant's own question, each a function that answers one thing.
CREATE FUNCTION generations(since bigint)
RETURNS TABLE (tenant text, owner text, generation bigint, in_database boolean, model_id text) AS $$
    SELECT s.tenant, s.owner, s.generation, t.in_database, c.model_id
    FROM scopes s JOIN tenants t USING (tenant), catalogue c WHERE s.generation >= since ORDER BY 1, 2
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION vectors_of(whose text, hashes bytea[]) RETURNS TABLE (text_hash bytea, vector halfvec) AS $$
    SELECT v.text_hash, v.vector FROM vectors v JOIN models m USING (model)
    WHERE m.model_id = whose AND v.text_hash = ANY (hashes)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION vectors_known(whose text, hashes bytea[]) RETURNS SETOF bytea AS $$
    SELECT v.text_hash FROM vectors v JOIN models m USING (model)
    WHERE m.model_id = whose AND v.text_hash = ANY (hashes)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION unembedded(whose text)
RETURNS TABLE (tenant text, key text, owner text, server text, facets bytea, definition bytea) AS $$
    SELECT t.tenant, t.key, t.owner, t.server, t.facets, t.definition FROM tools t
    WHERE NOT EXISTS (
        SELECT 1 FROM vectors v JOIN models m USING (model) WHERE m.model_id = whose AND v.text_hash = t.text_hash)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION forget_vectors(older_than interval) RETURNS bigint AS $$
    WITH gone AS (
        DELETE FROM vectors v WHERE v.added_at < now() - older_than
        AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.text_hash = v.text_hash) RETURNING 1)
    SELECT count(*) FROM gone
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

-- A tool takes its search row along: all of a statement at once, where a foreign key would ask for every single row.
CREATE FUNCTION forget_rows() RETURNS trigger AS $$
BEGIN
    DELETE FROM search_rows r USING gone g WHERE r.tenant = g.tenant AND r.owner = g.owner AND r.key = g.key;
    RETURN NULL;
END
$$ LANGUAGE plpgsql SET search_path = toolscout, {vector}, pg_temp;
CREATE TRIGGER forget_rows AFTER DELETE ON tools REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_rows();

CREATE FUNCTION settle() RETURNS void AS $$
BEGIN
    PERFORM gin_clean_pending_list('search_rows_words');
    ANALYZE tools, vectors, search_rows, term_counts, servers;
END
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION show_everywhere() RETURNS void AS $$
    UPDATE scopes SET generation = nextval('numbers');
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION revector_everything() RETURNS void AS $$
    UPDATE search_rows r SET model = found.model, embedding = found.vector
    FROM (
        SELECT r2.id, coalesce(m.model, 0)::smallint AS model, v.vector
        FROM search_rows r2 JOIN tools t USING (tenant, owner, key) CROSS JOIN catalogue c
        LEFT JOIN models m USING (model_id) LEFT JOIN vectors v ON v.model = m.model AND v.text_hash = t.text_hash
    ) found
    WHERE found.id = r.id AND (r.model <> found.model OR (r.embedding IS NULL) <> (found.vector IS NULL));
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

-- These two are the doors to the word index, which row-level security would keep closed: its operator is not leakproof.
-- The tenant is asked for all the same, by an expression that no other index answers.
CREATE FUNCTION holding(query tsquery, whose text) RETURNS SETOF bigint AS $$
    SELECT r.id FROM search_rows r WHERE r.words @@ query AND r.owner || '' = whose
    AND r.tenant || '' = nullif(current_setting('toolscout.tenant', true), '')
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp
SET enable_seqscan = off;

CREATE FUNCTION take_lease(wanted text, me text, ttl_s double precision) RETURNS bigint AS $$
    INSERT INTO leases AS l VALUES (wanted, me, clock_timestamp() + ttl_s * interval '1 s', 1)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
        fence = l.fence + (l.holder <> excluded.holder)::integer
    WHERE l.until <= clock_timestamp() OR l.holder = excluded.holder
    RETURNING l.fence
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION give_lease(wanted text, me text) RETURNS void AS $$
    UPDATE leases SET until = '-infinity' WHERE name = wanted AND holder = me
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION found_by_words(query tsquery, whose text, reach text[], hidden_by text)
RETURNS TABLE (id bigint, key text, terms bytea) AS $$
    SELECT r.id, r.key, r.terms FROM search_rows r WHERE r.words @@ query AND r.owner || '' = whose AND r.enabled
    AND r.tenant || '' = nullif(current_setting('toolscout.tenant', true), '') AND (reach IS NULL OR r.server = ANY (reach))
    AND (hidden_by IS NULL OR NOT EXISTS (
        SELECT 1 FROM search_rows o
        WHERE o.tenant = r.tenant AND o.owner = hidden_by AND o.key = r.key AND o.enabled))
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp
SET enable_seqscan = off;

-- Counts of what can be seen, kept by adding and taking away what a publication changes: of every lexeme in all, and of
-- plain words and of the words of names also for each server, as a caller may reach some servers only.
CREATE FUNCTION tally(whose text, wanted text[], sign integer) RETURNS void AS $$
    WITH held AS (
        SELECT lexeme, server, count(*) AS tools
        FROM (
            SELECT r.server, unnest(tsvector_to_array(r.words) || string_to_array(r.names, ' ')) AS lexeme
            FROM search_rows r WHERE r.tenant = current_setting('toolscout.tenant') AND r.owner = whose AND r.enabled
            AND (wanted IS NULL OR r.key = ANY (wanted))
        ) every
        GROUP BY lexeme, server
    )
    INSERT INTO term_counts AS c
    SELECT current_setting('toolscout.tenant'), whose, lexeme, server, sign * tools FROM held
    WHERE length(lexeme) = 12 OR lexeme LIKE '~%'
    UNION ALL
    SELECT current_setting('toolscout.tenant'), whose, lexeme, '', sign * sum(tools) FROM held GROUP BY lexeme
    ON CONFLICT (tenant, owner, lexeme, server) DO UPDATE SET tools = c.tools + excluded.tools;
    INSERT INTO summaries AS s
    SELECT r.tenant, r.owner, r.server, r.category, sign * count(*), sign * sum(r.tokens)
    FROM search_rows r WHERE r.tenant = current_setting('toolscout.tenant') AND r.owner = whose AND r.enabled
    AND (wanted IS NULL OR r.key = ANY (wanted))
    GROUP BY r.tenant, r.owner, r.server, r.category
    ON CONFLICT (tenant, owner, server, category)
    DO UPDATE SET tools = s.tools + excluded.tools, tokens = s.tokens + excluded.tokens;
$$ LANGUAGE sql SET search_path = toolscout, {vector}, pg_temp;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA toolscout FROM public;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA toolscout TO toolscout_app;
