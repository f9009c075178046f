-- What an account may do in its tenant as a whole: '' or 'admin' (D-11.4).
ALTER TABLE accounts ADD COLUMN tenant_role TEXT NOT NULL DEFAULT '';

-- A package's name is unique in its tenant, so that a reference names one thing; its kind never changes.
CREATE TABLE packages (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL REFERENCES tenants (id),
	kind       TEXT NOT NULL,
	name       KEYTEXT NOT NULL,
	public     BOOLEAN NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	UNIQUE (tenant, name)
);
CREATE INDEX packages_kind ON packages (tenant, kind, name);
CREATE INDEX packages_public ON packages (name, id) WHERE public;

-- Rows are only added; of a row only state and note change. precedence sorts as versions do, in byte order.
CREATE TABLE package_versions (
	package    TEXT NOT NULL REFERENCES packages (id),
	version    TEXT NOT NULL,
	precedence KEYTEXT NOT NULL,
	prerelease BOOLEAN NOT NULL,
	digest     TEXT NOT NULL,
	size       BIGINT NOT NULL,
	manifest   TEXT NOT NULL,
	state      TEXT NOT NULL,
	note       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	PRIMARY KEY (package, version)
);
CREATE UNIQUE INDEX package_versions_precedence ON package_versions (package, precedence);
CREATE INDEX package_versions_digest ON package_versions (digest, package);

-- Who needs an object besides the paths of repositories. An object with a row here is never collected.
CREATE TABLE object_references (
	digest     TEXT NOT NULL,
	holder     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (digest, holder)
);
