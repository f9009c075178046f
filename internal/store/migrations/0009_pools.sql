-- Pools and what they are shared by (R-2, R-5).
CREATE TABLE pools (
	name       KEYTEXT PRIMARY KEY,
	tenant     TEXT NOT NULL,   -- owner of an own pool; empty: all tenants'
	policy     TEXT NOT NULL,
	draining   BOOLEAN NOT NULL,
	drain_by   BIGINT NOT NULL, -- 0: no deadline
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL
);

-- One owner decides for a pool; a deposed one fails at its epoch.
CREATE TABLE pool_owners (
	pool  KEYTEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	epoch BIGINT NOT NULL,
	beats BIGINT NOT NULL, -- counts renewals of the owner
	clock TEXT NOT NULL    -- virtual times of the tenants, flushed now and then
);

CREATE TABLE pool_shares (
	pool      KEYTEXT NOT NULL,
	tenant    KEYTEXT NOT NULL,
	weight    BIGINT NOT NULL,
	max_slots BIGINT NOT NULL,
	PRIMARY KEY (pool, tenant)
);

CREATE TABLE budgets (
	tenant   KEYTEXT PRIMARY KEY,
	limited  BIGINT NOT NULL, -- micro-units
	spent    BIGINT NOT NULL,
	revision BIGINT NOT NULL
);

CREATE TABLE runners (
	id         KEYTEXT PRIMARY KEY,
	pool       TEXT NOT NULL,
	name       KEYTEXT NOT NULL,
	hash       TEXT NOT NULL,   -- of its key
	capacity   TEXT NOT NULL,
	labels     TEXT NOT NULL,
	version    TEXT NOT NULL,
	protocol   BIGINT NOT NULL,
	draining   BOOLEAN NOT NULL,
	revoked_at BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	sequence   BIGINT NOT NULL, -- last assignment made
	acked      BIGINT NOT NULL, -- last one acknowledged
	beats      BIGINT NOT NULL,
	seen_at    BIGINT NOT NULL  -- for people
);
CREATE INDEX runners_pool ON runners (pool, name);

CREATE TABLE runner_tokens (
	id         KEYTEXT PRIMARY KEY,
	pool       TEXT NOT NULL,
	hash       TEXT NOT NULL UNIQUE,
	expires_at BIGINT NOT NULL,
	used_by    TEXT NOT NULL
);
