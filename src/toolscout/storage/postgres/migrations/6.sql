-- A lease that ends far later than one that is taken now was taken while the clock was ahead, and is void.
CREATE OR REPLACE FUNCTION take_lease(wanted text, me text, ttl_s double precision) RETURNS bigint AS $$
    INSERT INTO leases AS l SELECT wanted, me, clock_timestamp() + ttl_s * interval '1 s', 1 WHERE outside_tenants()
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
        fence = l.fence + (l.holder <> excluded.holder)::integer
    WHERE l.until <= clock_timestamp() OR l.holder = excluded.holder
    OR l.until > clock_timestamp() + ttl_s * interval '1 s' + interval '5 min'
    RETURNING l.fence
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;

-- Since when the tool of a pin is gone. A publication that brings it back deletes the row.
CREATE TABLE gone_pins (
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, owner, name)
);
ALTER TABLE gone_pins ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON gone_pins USING (tenant = nullif(current_setting('toolscout.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON gone_pins TO toolscout_app;

-- The body is not read as JSON: PostgreSQL refuses some of the escapes in it. A verdict that an operator gave is kept.
CREATE FUNCTION only_seen(body text) RETURNS boolean AS $$
    SELECT body ~ '^\{"key": "(?:[^"\\]|\\.)*", "fingerprint": "[^"\\]*", "verdict": "seen"'
$$ LANGUAGE sql IMMUTABLE;

CREATE FUNCTION forget_pins(older_than interval, settled interval, most bigint) RETURNS void AS $$
    DELETE FROM gone_pins g WHERE outside_tenants() AND (
        EXISTS (SELECT 1 FROM tools t WHERE t.tenant = g.tenant AND t.owner = g.owner AND t.key = g.name)
        OR NOT EXISTS (SELECT 1 FROM records r
            WHERE r.kind = 'pin' AND r.tenant = g.tenant AND r.owner = g.owner AND r.name = g.name));
    INSERT INTO gone_pins SELECT r.tenant, r.owner, r.name FROM records r
    WHERE r.kind = 'pin' AND only_seen(r.body) AND NOT EXISTS (
        SELECT 1 FROM tools t WHERE t.tenant = r.tenant AND t.owner = r.owner AND t.key = r.name)
    ON CONFLICT DO NOTHING;
    WITH placed AS (
        SELECT g.*, row_number() OVER (PARTITION BY tenant, owner, split_part(name, '__', 1) ORDER BY since, name) AS place
        FROM gone_pins g)
    DELETE FROM records r USING placed p
    WHERE r.kind = 'pin' AND r.tenant = p.tenant AND r.owner = p.owner AND r.name = p.name AND only_seen(r.body)
    -- Not now(), when this transaction began: another one may have noted the pin since.
    AND (p.since <= clock_timestamp() - older_than OR p.since <= clock_timestamp() - settled AND p.place > most);
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;
REVOKE ALL ON FUNCTION forget_pins(interval, interval, bigint) FROM public;
GRANT EXECUTE ON FUNCTION forget_pins(interval, interval, bigint) TO toolscout_app;
