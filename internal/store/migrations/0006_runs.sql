-- Runs, R-2 and R-4.5. Hot rows are narrow and refer to no shared parent by a foreign key; what is large lies apart.
CREATE TABLE runs (
	id            KEYTEXT PRIMARY KEY,
	tenant        KEYTEXT NOT NULL,
	pool          TEXT NOT NULL,
	state         TEXT NOT NULL,
	reason        TEXT NOT NULL,
	fence         BIGINT NOT NULL, -- counts Attempts; every new one names the one before
	version       BIGINT NOT NULL, -- counts changes of this row
	created_at    BIGINT NOT NULL,
	created_by    TEXT NOT NULL,
	created_name  TEXT NOT NULL,
	next_eligible BIGINT NOT NULL, -- not before the submit's or a retry's instant
	eligible_at   BIGINT NOT NULL, -- of its last coming back: age and order count from it
	priority      BIGINT NOT NULL,
	class         TEXT NOT NULL,
	package       TEXT NOT NULL, -- name@version; empty for a command
	array_id      TEXT NOT NULL,
	array_index   BIGINT NOT NULL,
	lane          TEXT NOT NULL, -- concurrency key
	waits_for     BIGINT NOT NULL, -- dependencies that are not met yet
	failures      BIGINT NOT NULL,
	losses        BIGINT NOT NULL,
	cancel        BOOLEAN NOT NULL,
	cancel_reason TEXT NOT NULL,
	started_at    BIGINT NOT NULL,
	ended_at      BIGINT NOT NULL,
	spent         BIGINT NOT NULL,
	inserted      BIGINT NOT NULL  -- the owner follows new rows by it
);
CREATE INDEX runs_tenant ON runs (tenant, created_at, id);
CREATE INDEX runs_tenant_state ON runs (tenant, state, created_at, id); -- lists of a state that few are in
CREATE INDEX runs_created ON runs (created_at, id);
CREATE INDEX runs_queue ON runs (pool, state, id) WHERE state = 'queued';
CREATE INDEX runs_queued ON runs (pool, tenant, eligible_at) WHERE state = 'queued';
CREATE INDEX runs_array ON runs (array_id, array_index) WHERE array_id <> '';
CREATE INDEX runs_lane ON runs (tenant, lane) WHERE lane <> '' AND state IN ('queued', 'active');
CREATE INDEX runs_inserted ON runs (pool, inserted);

-- What was asked for, as resolved at the submit; never changed.
CREATE TABLE run_specs (
	run   KEYTEXT PRIMARY KEY,
	brief TEXT NOT NULL, -- the little of it that dispatching needs: an owner reads it of every Run that waits
	spec  TEXT NOT NULL
);

CREATE TABLE run_labels (
	tenant KEYTEXT NOT NULL,
	name   KEYTEXT NOT NULL,
	value  KEYTEXT NOT NULL,
	run    KEYTEXT NOT NULL,
	PRIMARY KEY (tenant, name, value, run)
);

-- Idempotency (R-2.4): kept as long as the Run.
CREATE TABLE run_keys (
	tenant    TEXT NOT NULL,
	principal TEXT NOT NULL,
	route     TEXT NOT NULL,
	name      TEXT NOT NULL,
	body      TEXT NOT NULL, -- hash of the request
	answer    TEXT NOT NULL, -- ids of the Runs it made
	PRIMARY KEY (tenant, principal, route, name)
);

CREATE TABLE run_dependencies (
	needs    KEYTEXT NOT NULL, -- the Run that is waited for
	run      KEYTEXT NOT NULL,
	required TEXT NOT NULL,    -- ok, any, fail
	PRIMARY KEY (needs, run)
);
CREATE INDEX run_dependencies_run ON run_dependencies (run);

CREATE TABLE attempts (
	id          KEYTEXT PRIMARY KEY,
	run         KEYTEXT NOT NULL,
	tenant      TEXT NOT NULL,
	pool        TEXT NOT NULL,
	runner      TEXT NOT NULL,
	number      BIGINT NOT NULL,
	fence       BIGINT NOT NULL,
	state       TEXT NOT NULL,
	reason      TEXT NOT NULL,
	detail      TEXT NOT NULL,
	sequence    BIGINT NOT NULL, -- of the assignment, counted per runner
	beats       BIGINT NOT NULL, -- renewals; nobody's clock is compared with another's
	lease_until BIGINT NOT NULL, -- for people; no decision is made by it
	resources   TEXT NOT NULL,
	assigned_at BIGINT NOT NULL,
	started_at  BIGINT NOT NULL,
	ended_at    BIGINT NOT NULL,
	decision    TEXT NOT NULL,   -- what the dispatch machine needs to take the Attempt up again
	report      TEXT NOT NULL,   -- the runner's terminal report
	cost        BIGINT NOT NULL
);
CREATE INDEX attempts_run ON attempts (run, number);
-- Without the instant of the lease, a renewal changes no index.
CREATE INDEX attempts_pool ON attempts (pool) WHERE state IN ('assigned', 'starting', 'running', 'finalizing');
CREATE INDEX attempts_runner ON attempts (runner, sequence) WHERE state IN ('assigned', 'starting', 'running', 'finalizing');

-- A hold ends only in the transaction that ends its Attempt (R-2.1).
CREATE TABLE holds (
	attempt KEYTEXT NOT NULL,
	kind    TEXT NOT NULL,    -- money, slots, lane
	account TEXT NOT NULL,    -- tenant for money, pool/tenant for slots, tenant/key for a lane
	amount  BIGINT NOT NULL,
	PRIMARY KEY (attempt, kind)
);
CREATE INDEX holds_money ON holds (account) WHERE kind = 'money';
CREATE UNIQUE INDEX holds_lane ON holds (account) WHERE kind = 'lane';

CREATE TABLE run_events (
	run     KEYTEXT NOT NULL,
	seq     BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	kind    TEXT NOT NULL,
	attempt TEXT NOT NULL,
	reason  TEXT NOT NULL,
	detail  TEXT NOT NULL,
	PRIMARY KEY (run, seq)
);

-- Logs in pieces of many lines: first is the number of the first line of the piece within its Attempt.
CREATE TABLE run_logs (
	run     KEYTEXT NOT NULL,
	attempt KEYTEXT NOT NULL,
	number  BIGINT NOT NULL, -- of the Attempt within the Run
	first   BIGINT NOT NULL,
	lines   BIGINT NOT NULL,
	body    TEXT NOT NULL,
	PRIMARY KEY (run, number, first)
);

CREATE TABLE run_progress (
	run      KEYTEXT PRIMARY KEY,
	fraction DOUBLE PRECISION NOT NULL,
	message  TEXT NOT NULL,
	at       BIGINT NOT NULL
);

-- Leave for one Attempt to upload one object (section 5: Reports).
CREATE TABLE run_grants (
	id         KEYTEXT PRIMARY KEY,
	attempt    KEYTEXT NOT NULL,
	run        KEYTEXT NOT NULL,
	kind       TEXT NOT NULL,    -- result, checkpoint
	name       TEXT NOT NULL,
	digest     TEXT NOT NULL,
	size       BIGINT NOT NULL,
	hash       TEXT NOT NULL,    -- of the secret
	expires_at BIGINT NOT NULL,
	done_at    BIGINT NOT NULL,
	UNIQUE (attempt, kind, name, digest)
);
CREATE UNIQUE INDEX run_grants_hash ON run_grants (hash);
CREATE INDEX run_grants_run ON run_grants (run, kind, done_at);

-- Verified results; a Run has at most one manifest.
CREATE TABLE run_results (
	run        KEYTEXT NOT NULL,
	name       KEYTEXT NOT NULL,
	attempt    TEXT NOT NULL,
	digest     TEXT NOT NULL,
	size       BIGINT NOT NULL,
	media_type TEXT NOT NULL,
	PRIMARY KEY (run, name)
);
