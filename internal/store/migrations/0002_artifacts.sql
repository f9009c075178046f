CREATE TABLE repositories (
	id         TEXT PRIMARY KEY,
	name       KEYTEXT NOT NULL UNIQUE,
	tenant     TEXT NOT NULL REFERENCES tenants (id),
	created_at BIGINT NOT NULL
);

CREATE TABLE grants (
	repository TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
	account    KEYTEXT NOT NULL REFERENCES accounts (id),
	role       TEXT NOT NULL,
	PRIMARY KEY (repository, account)
);
CREATE INDEX grants_account ON grants (account);

-- One row a path: its current revision. The compare-and-set of every write is on this row.
CREATE TABLE files (
	repository TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
	path       KEYTEXT NOT NULL,
	revision   BIGINT NOT NULL,
	deleted    BOOLEAN NOT NULL,
	PRIMARY KEY (repository, path)
);

-- Every revision a path ever had; rows are only added.
CREATE TABLE revisions (
	repository TEXT NOT NULL,
	path       KEYTEXT NOT NULL,
	revision   BIGINT NOT NULL,
	digest     TEXT NOT NULL,
	size       BIGINT NOT NULL,
	media_type TEXT NOT NULL,
	deleted    BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	PRIMARY KEY (repository, path, revision),
	FOREIGN KEY (repository, path) REFERENCES files (repository, path) ON DELETE CASCADE
);
CREATE INDEX revisions_digest ON revisions (digest, repository);

CREATE TABLE links (
	id         KEYTEXT PRIMARY KEY,
	hash       TEXT NOT NULL UNIQUE,
	repository TEXT NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
	path       KEYTEXT NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	expires_at BIGINT NOT NULL,
	revoked_at BIGINT NOT NULL
);
CREATE INDEX links_repository ON links (repository, id);

CREATE TABLE uploads (
	id            TEXT PRIMARY KEY,
	repository    TEXT NOT NULL,
	path          KEYTEXT NOT NULL,
	media_type    TEXT NOT NULL,
	size          BIGINT NOT NULL,
	digest        TEXT NOT NULL,
	if_match      TEXT NOT NULL,
	if_none_match TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	created_by    TEXT NOT NULL,
	expires_at    BIGINT NOT NULL,
	revision      BIGINT NOT NULL
);
CREATE INDEX uploads_expires ON uploads (expires_at);
CREATE INDEX uploads_created_by ON uploads (created_by);
