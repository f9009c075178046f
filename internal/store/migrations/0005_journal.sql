-- Places in the download queue, written in batches, so that a restart finds them without waiting for the clients. None
-- of these tables is part of backups: a restored installation has no clients that wait.
CREATE TABLE download_journal (
	id         TEXT PRIMARY KEY,
	principal  TEXT NOT NULL,
	state      BIGINT NOT NULL,
	class      BIGINT NOT NULL,
	identified BOOLEAN NOT NULL,
	tail_only  BOOLEAN NOT NULL,
	begun      BOOLEAN NOT NULL,
	arrival    BIGINT NOT NULL,
	sequence   BIGINT NOT NULL,
	size       BIGINT NOT NULL,
	wanted     BIGINT NOT NULL,
	start      BIGINT NOT NULL,
	spans      TEXT NOT NULL,
	until      BIGINT NOT NULL
);
CREATE INDEX download_journal_until ON download_journal (until) WHERE until > 0;

CREATE TABLE download_bookings (
	id    TEXT PRIMARY KEY,
	body  TEXT NOT NULL,
	until BIGINT NOT NULL
);
CREATE INDEX download_bookings_until ON download_bookings (until) WHERE until > 0;

-- One row: when the journal was last written, by a process that lived.
CREATE TABLE download_journal_mark (
	id    BIGINT PRIMARY KEY CHECK (id = 1),
	alive BIGINT NOT NULL
);
