-- Numbers of models were used up by every call that brought vectors: those that no model has are given back.
SELECT setval('models_model_seq', coalesce(max(model), 1), max(model) IS NOT NULL) FROM models;

-- Doors that answer for all tenants are closed inside the transaction of one.
CREATE FUNCTION outside_tenants() RETURNS boolean AS $$
BEGIN
    IF current_setting('toolscout.tenant', true) <> '' THEN
        RAISE insufficient_privilege USING MESSAGE = 'this is not answered inside a tenant''s transaction';
    END IF;
    RETURN true;
END
$$ LANGUAGE plpgsql STABLE;
REVOKE ALL ON FUNCTION outside_tenants() FROM public;

CREATE OR REPLACE FUNCTION generations(since bigint)
RETURNS TABLE (tenant text, owner text, generation bigint, in_database boolean, model_id text) AS $$
    SELECT s.tenant, s.owner, s.generation, t.in_database, c.model_id
    FROM scopes s JOIN tenants t USING (tenant), catalogue c
    WHERE outside_tenants() AND s.generation >= since ORDER BY 1, 2
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION vectors_of(whose text, hashes bytea[]) RETURNS TABLE (text_hash bytea, vector halfvec) AS $$
    SELECT v.text_hash, v.vector FROM vectors v JOIN models m USING (model)
    WHERE outside_tenants() AND m.model_id = whose AND v.text_hash = ANY (hashes)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION vectors_known(whose text, hashes bytea[]) RETURNS SETOF bytea AS $$
    SELECT v.text_hash FROM vectors v JOIN models m USING (model)
    WHERE outside_tenants() AND m.model_id = whose AND v.text_hash = ANY (hashes)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION unembedded(whose text)
RETURNS TABLE (tenant text, key text, owner text, server text, facets bytea, definition bytea) AS $$
    SELECT t.tenant, t.key, t.owner, t.server, t.facets, t.definition FROM tools t
    WHERE outside_tenants() AND NOT EXISTS (
        SELECT 1 FROM vectors v JOIN models m USING (model) WHERE m.model_id = whose AND v.text_hash = t.text_hash)
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION records_of_all(wanted text, first text, last text)
RETURNS TABLE (tenant text, owner text, name text, body text) AS $$
    SELECT tenant, owner, name, body FROM records
    WHERE outside_tenants() AND kind = wanted AND name >= first AND name <= last ORDER BY name, tenant, owner
$$ LANGUAGE sql STABLE SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION forget_vectors(older_than interval) RETURNS bigint AS $$
    WITH gone AS (
        DELETE FROM vectors v WHERE outside_tenants() AND v.added_at < now() - older_than
        AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.text_hash = v.text_hash) RETURNING 1)
    SELECT count(*) FROM gone
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE OR REPLACE FUNCTION take_lease(wanted text, me text, ttl_s double precision) RETURNS bigint AS $$
    INSERT INTO leases AS l SELECT wanted, me, clock_timestamp() + ttl_s * interval '1 s', 1 WHERE outside_tenants()
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
        fence = l.fence + (l.holder <> excluded.holder)::integer
    WHERE l.until <= clock_timestamp() OR l.holder = excluded.holder
    RETURNING l.fence
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

-- What nobody needs any more goes: words without tools at once, the rest when it has been of no use for long.
DELETE FROM term_counts WHERE tools = 0;
DELETE FROM summaries WHERE tools = 0;
CREATE OR REPLACE FUNCTION tally(whose text, wanted text[], sign integer) RETURNS void AS $$
DECLARE
    mine text := current_setting('toolscout.tenant');
    empty_lexemes text[];
    empty_servers text[];
BEGIN
    WITH held AS (
        SELECT lexeme, server, count(*) AS tools
        FROM (
            SELECT r.server, unnest(tsvector_to_array(r.words) || string_to_array(r.names, ' ')) AS lexeme
            FROM search_rows r WHERE r.tenant = mine AND r.owner = whose AND r.enabled
            AND (wanted IS NULL OR r.key = ANY (wanted))
        ) every
        GROUP BY lexeme, server
    ), counted AS (
        INSERT INTO term_counts AS c
        SELECT mine, whose, lexeme, server, sign * tools FROM held
        WHERE length(lexeme) = 12 OR lexeme LIKE '~%'
        UNION ALL
        SELECT mine, whose, lexeme, '', sign * sum(tools) FROM held GROUP BY lexeme
        ON CONFLICT (tenant, owner, lexeme, server) DO UPDATE SET tools = c.tools + excluded.tools
        RETURNING c.lexeme, c.server, c.tools
    )
    SELECT array_agg(lexeme), array_agg(server) INTO empty_lexemes, empty_servers FROM counted WHERE tools = 0;
    DELETE FROM term_counts c USING unnest(empty_lexemes, empty_servers) AS n (lexeme, server)
    WHERE c.tenant = mine AND c.owner = whose AND c.lexeme = n.lexeme AND c.server = n.server;
    INSERT INTO summaries AS s
    SELECT r.tenant, r.owner, r.server, r.category, sign * count(*), sign * sum(r.tokens)
    FROM search_rows r WHERE r.tenant = mine AND r.owner = whose AND r.enabled
    AND (wanted IS NULL OR r.key = ANY (wanted))
    GROUP BY r.tenant, r.owner, r.server, r.category
    ON CONFLICT (tenant, owner, server, category)
    DO UPDATE SET tools = s.tools + excluded.tools, tokens = s.tokens + excluded.tokens;
    DELETE FROM summaries s WHERE s.tenant = mine AND s.owner = whose AND s.tools = 0;
END
$$ LANGUAGE plpgsql SET search_path = toolscout, {vector}, pg_temp SET plan_cache_mode = force_custom_plan;

ALTER TABLE scopes ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now();
CREATE OR REPLACE FUNCTION give_lease(wanted text, me text) RETURNS void AS $$
    UPDATE leases SET until = clock_timestamp() WHERE name = wanted AND holder = me
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

CREATE FUNCTION forget_unused(older_than interval) RETURNS void AS $$
    SELECT forget_vectors(older_than);
    DELETE FROM leases WHERE until < now() - older_than;
    DELETE FROM scopes s WHERE s.owner <> '' AND s.changed_at < now() - older_than
    AND NOT EXISTS (SELECT 1 FROM servers v WHERE v.tenant = s.tenant AND v.owner = s.owner)
    AND NOT EXISTS (SELECT 1 FROM switches w WHERE w.tenant = s.tenant AND w.owner = s.owner);
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;
REVOKE ALL ON FUNCTION forget_unused(interval) FROM public;
GRANT EXECUTE ON FUNCTION forget_unused(interval) TO toolscout_app;
