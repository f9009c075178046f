-- One row once anything was changed: what an operator changed of the environment's download settings (D-9). Settings
-- fit the hardware and the link they were chosen for, so neither table is part of backups: a restored installation
-- runs on its own environment.
CREATE TABLE download_settings (
	id              BIGINT PRIMARY KEY CHECK (id = 1),
	revision        BIGINT NOT NULL,
	record          TEXT NOT NULL,
	changed_at      BIGINT NOT NULL,
	changed_by      TEXT NOT NULL,
	changed_by_name TEXT NOT NULL
);

-- Every revision there was; rows are only added.
CREATE TABLE download_settings_history (
	revision        BIGINT PRIMARY KEY,
	record          TEXT NOT NULL,
	fields          TEXT NOT NULL,
	changed_at      BIGINT NOT NULL,
	changed_by      TEXT NOT NULL,
	changed_by_name TEXT NOT NULL
);
