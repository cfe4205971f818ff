"""The tables and statements of the PostgreSQL key store; `our` stands for the schema."""

# ruff: noqa: S608 - statements are put together from constants; values always go as parameters

from __future__ import annotations

TABLES = """
CREATE TABLE our.keys (
  id text PRIMARY KEY, digest bytea NOT NULL, record text NOT NULL,
  created_at double precision NOT NULL, revoked_at double precision,
  requests_at double precision NOT NULL DEFAULT 0, tokens_at double precision NOT NULL DEFAULT 0
);
CREATE TABLE our.spent (
  key text NOT NULL, span text NOT NULL, tokens bigint NOT NULL, nanos bigint NOT NULL,
  PRIMARY KEY (key, span)
);
CREATE TABLE our.reservations (
  key text NOT NULL, id text NOT NULL, tokens bigint NOT NULL, nanos bigint NOT NULL,
  day text NOT NULL, until double precision NOT NULL, PRIMARY KEY (key, id)
);
CREATE INDEX leases ON our.reservations (until);
CREATE TABLE our.usage (
  key text NOT NULL, day text NOT NULL, model text NOT NULL, route text NOT NULL,
  requests bigint NOT NULL, tokens_in bigint NOT NULL, tokens_out bigint NOT NULL,
  tokens_cached bigint NOT NULL, tokens_reasoning bigint NOT NULL, nanos bigint NOT NULL,
  unknown bigint NOT NULL, PRIMARY KEY (key, day, model, route)
);
CREATE TABLE our.batches (token text PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE our.key_store (version integer NOT NULL);
INSERT INTO our.key_store VALUES (1)
"""
LOCK = "SELECT pg_advisory_xact_lock(4946170)"  # workers that start together create the tables once
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# Reads the catalogue itself: to_regclass() may use a cache that is older than the lock.
IS_THERE = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'key_store')
"""
HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s)"
ISOLATION = "SELECT current_setting('default_transaction_isolation')"
VERSION = "SELECT version FROM our.key_store"

ADD = """
INSERT INTO our.keys (id, digest, record, created_at, revoked_at) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING RETURNING id
"""
FIND = "SELECT record, digest, revoked_at FROM our.keys WHERE id = %s"
RECORDS = "SELECT id, record, revoked_at FROM our.keys ORDER BY created_at, id"
REVOKE = """
UPDATE our.keys SET revoked_at = coalesce(revoked_at, %s) WHERE id = %s
RETURNING id
"""

# A worker that hangs between the lock and the commit must not block the others forever.
PATIENCE = "SET LOCAL idle_in_transaction_session_timeout = '10s'"
LOCK_KEY = "SELECT revoked_at, requests_at, tokens_at FROM our.keys WHERE id = %s FOR UPDATE"
# A single statement, for one snapshot. With two, a reservation settled in between would count
# neither as reserved nor as spent.
METER = """
SELECT 'spent', span, 0, tokens, nanos FROM our.spent WHERE key = %s AND span = ANY(%s)
UNION ALL
SELECT 'held', day, count(*), sum(tokens)::bigint, sum(nanos)::bigint FROM our.reservations
WHERE key = %s AND until > %s GROUP BY day
UNION ALL
SELECT 'again', id, 0, 0, 0 FROM our.reservations WHERE key = %s AND id = %s
"""
STANDING = """
SELECT 'spent', span, 0, tokens, nanos FROM our.spent WHERE key = %s
UNION ALL
SELECT 'held', day, count(*), sum(tokens)::bigint, sum(nanos)::bigint FROM our.reservations
WHERE key = %s AND until > %s GROUP BY day
"""
HOLD = """
INSERT INTO our.reservations (id, key, tokens, nanos, day, until) VALUES (%s, %s, %s, %s, %s, %s)
"""
RATES = "UPDATE our.keys SET requests_at = %s, tokens_at = %s WHERE id = %s"

_ENDED = (
    "WITH ended AS (DELETE FROM our.reservations WHERE key = %s AND id = %s RETURNING key, day)"
)
_CORRECTED = """, corrected AS (
  UPDATE our.keys SET tokens_at = least(tokens_at + %s, %s) FROM ended WHERE keys.id = ended.key
)"""
_SUMS = """
  requests = u.requests + excluded.requests, tokens_in = u.tokens_in + excluded.tokens_in,
  tokens_out = u.tokens_out + excluded.tokens_out,
  tokens_cached = u.tokens_cached + excluded.tokens_cached,
  tokens_reasoning = u.tokens_reasoning + excluded.tokens_reasoning,
  nanos = u.nanos + excluded.nanos, unknown = u.unknown + excluded.unknown
"""
_CHARGED = (
    """, charged AS (
  INSERT INTO our.spent AS s (key, span, tokens, nanos)
  SELECT key, span, %s, %s
  FROM ended, unnest(ARRAY['total', substr(day, 1, 7), day]) AS span
  ON CONFLICT (key, span) DO UPDATE SET
    tokens = s.tokens + excluded.tokens, nanos = s.nanos + excluded.nanos
), used AS (
  INSERT INTO our.usage AS u
  SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s FROM ended
  ON CONFLICT (key, day, model, route) DO UPDATE SET"""
    + _SUMS
    + ")"
)
_COUNTED = " SELECT count(*) FROM ended"
RELEASE = _ENDED + _COUNTED
RELEASE_RATED = _ENDED + _CORRECTED + _COUNTED
SETTLE = _ENDED + _CHARGED + _COUNTED
SETTLE_RATED = _ENDED + _CORRECTED + _CHARGED + _COUNTED

RENEW = """
UPDATE our.reservations AS r SET until = %s
FROM unnest(%s::text[], %s::text[]) AS mine (key, id) WHERE r.key = mine.key AND r.id = mine.id
"""
SWEEP = "DELETE FROM our.reservations WHERE until < %s"
SWEEP_BATCHES = "DELETE FROM our.batches WHERE at < %s"

ADD_USAGE = (
    """
WITH fresh AS (
  INSERT INTO our.batches VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING token
)
INSERT INTO our.usage AS u
SELECT r.* FROM fresh, unnest(
  %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
  %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS r
ON CONFLICT (key, day, model, route) DO UPDATE SET"""
    + _SUMS
)
# The spending of a batch is kept under its name, and so is the fact that it was charged.
CHARGE_BATCH = (
    """
WITH fresh AS (
  INSERT INTO our.spent VALUES (%s, 'batch', %s, %s) ON CONFLICT DO NOTHING RETURNING tokens, nanos
), charged AS (
  INSERT INTO our.spent AS s (key, span, tokens, nanos)
  SELECT %s, span, tokens, nanos FROM fresh, unnest(%s::text[]) AS span
  ON CONFLICT (key, span) DO UPDATE SET
    tokens = s.tokens + excluded.tokens, nanos = s.nanos + excluded.nanos
), used AS (
  INSERT INTO our.usage AS u
  SELECT r.* FROM fresh, unnest(
    %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS r
  ON CONFLICT (key, day, model, route) DO UPDATE SET"""
    + _SUMS
    + """)
SELECT count(*) FROM fresh"""
)
USAGE = """
SELECT key, day, model, route, requests, tokens_in, tokens_out, tokens_cached, tokens_reasoning,
  nanos, unknown
FROM our.usage WHERE (%s::text IS NULL OR key = %s) AND day >= %s
ORDER BY key COLLATE "C", day COLLATE "C", model COLLATE "C", route COLLATE "C"
"""
