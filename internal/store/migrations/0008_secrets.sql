-- Secrets without their values. packages is a JSON array of those that get it; [] is every Run of the tenant.
CREATE TABLE secrets (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL REFERENCES tenants (id),
	name       KEYTEXT NOT NULL,
	packages   TEXT NOT NULL,
	version    BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	rotated_at BIGINT NOT NULL,
	rotated_by TEXT NOT NULL,
	UNIQUE (tenant, name)
);

-- Values, sealed under a key that is not in this database; the text is base64.
CREATE TABLE secret_versions (
	secret  KEYTEXT NOT NULL,
	version BIGINT NOT NULL,
	key_id  TEXT NOT NULL,
	sealed  TEXT NOT NULL,
	PRIMARY KEY (secret, version)
);
