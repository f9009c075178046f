-- Schedules. The plan is JSON; instant and due are the next fire, 0 when there is none (paused, or the rule ended).
CREATE TABLE schedules (
	id         KEYTEXT PRIMARY KEY,
	tenant     TEXT NOT NULL REFERENCES tenants (id),
	name       KEYTEXT NOT NULL,
	owner      TEXT NOT NULL,
	pool       TEXT NOT NULL,
	plan       TEXT NOT NULL,
	shape      TEXT NOT NULL,
	paused     BOOLEAN NOT NULL,
	revision   BIGINT NOT NULL,
	instant    BIGINT NOT NULL,
	due        BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	UNIQUE (tenant, name)
);
CREATE INDEX schedules_due ON schedules (due) WHERE due > 0;
CREATE INDEX schedules_pool ON schedules (pool, id);

-- What became of each fire; its key keeps a fire from being made twice. What it submits (JSON) is kept while it is pending.
CREATE TABLE schedule_fires (
	schedule   TEXT NOT NULL,
	instant    BIGINT NOT NULL,
	due        BIGINT NOT NULL,
	what       TEXT NOT NULL,
	state      TEXT NOT NULL,
	run        TEXT NOT NULL,
	reason     TEXT NOT NULL,
	tries      BIGINT NOT NULL,
	try_at     BIGINT NOT NULL,
	until      BIGINT NOT NULL,
	claimed_at BIGINT NOT NULL,
	settled_at BIGINT NOT NULL,
	PRIMARY KEY (schedule, instant)
);
CREATE INDEX schedule_fires_pending ON schedule_fires (try_at) WHERE state = 'pending';
CREATE INDEX schedule_fires_settled ON schedule_fires (settled_at) WHERE settled_at > 0;
