-- One row: the key that signs places in the queue, made by the first writer process. Not part of backups.
CREATE TABLE ticket_key (
	id         BIGINT PRIMARY KEY CHECK (id = 1),
	secret     TEXT NOT NULL,
	created_at BIGINT NOT NULL
);

-- One row: whether downloads were waiting, so that a restart lets them come back first.
CREATE TABLE queue_state (
	id      BIGINT PRIMARY KEY CHECK (id = 1),
	waiters BOOLEAN NOT NULL
);
