-- KEYTEXT is text in byte order: a domain on PostgreSQL, any text on SQLite. Instants are Unix ms, 0 for none.
CREATE TABLE tenants (
	id         TEXT PRIMARY KEY,
	name       KEYTEXT NOT NULL UNIQUE,
	created_at BIGINT NOT NULL
);

CREATE TABLE accounts (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL REFERENCES tenants (id),
	kind       TEXT NOT NULL,
	name       KEYTEXT NOT NULL,
	class      TEXT NOT NULL,
	operator   BOOLEAN NOT NULL,
	disabled   BOOLEAN NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	UNIQUE (tenant, name)
);

CREATE TABLE api_keys (
	id         TEXT PRIMARY KEY,
	account    TEXT NOT NULL REFERENCES accounts (id),
	name       TEXT NOT NULL,
	hash       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	revoked_at BIGINT NOT NULL,
	last_used  BIGINT NOT NULL
);
CREATE INDEX api_keys_account ON api_keys (account, created_at);

CREATE TABLE audit (
	id     KEYTEXT PRIMARY KEY,
	at     BIGINT NOT NULL,
	tenant TEXT NOT NULL,
	actor  TEXT NOT NULL,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	detail TEXT NOT NULL
);
