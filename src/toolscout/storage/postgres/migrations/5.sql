-- A user's pins keep their scope, so that what was decided about their tools is still exported after their servers are gone.
CREATE OR REPLACE FUNCTION forget_unused(older_than interval) RETURNS void AS $$
    SELECT forget_vectors(older_than);
    DELETE FROM leases WHERE until < now() - older_than;
    DELETE FROM scopes s WHERE s.owner <> '' AND s.changed_at < now() - older_than
    AND NOT EXISTS (SELECT 1 FROM servers v WHERE v.tenant = s.tenant AND v.owner = s.owner)
    AND NOT EXISTS (SELECT 1 FROM switches w WHERE w.tenant = s.tenant AND w.owner = s.owner)
    AND NOT EXISTS (SELECT 1 FROM records r WHERE r.kind = 'pin' AND r.tenant = s.tenant AND r.owner = s.owner);
$$ LANGUAGE sql SECURITY DEFINER SET search_path = toolscout, {vector}, pg_temp;
