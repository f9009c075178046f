package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/runs"
)

// winner is an Attempt to be made, with the names under which the statements find its parts.
type winner struct {
	Attempt   string        `json:"attempt"`
	Run       string        `json:"run"`
	Tenant    string        `json:"tenant"`
	Pool      string        `json:"pool"`
	Runner    string        `json:"runner"`
	Fence     int64         `json:"fence"`
	Sequence  int64         `json:"sequence"`
	Lease     int64         `json:"lease"`
	At        int64         `json:"at"`
	Resources api.Resources `json:"resources"`
	Decision  string        `json:"decision"`
	holds     []hold
}

// hold is a row of holds to be made.
type hold struct {
	Attempt string `json:"attempt"`
	Kind    string `json:"kind"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
}

func newWinner(o dispatcher.Owner, a dispatcher.Assignment, sequence int64) winner {
	w := winner{
		Attempt: a.Attempt, Run: a.Run, Tenant: a.Tenant, Pool: o.Pool, Runner: a.Runner, Fence: a.Fence + 1, Sequence: sequence,
		Lease: millis(a.LeaseUntil), At: millis(a.At), Resources: a.Resources, Decision: a.Decision,
		holds: []hold{{a.Attempt, "slots", o.Pool + "/" + a.Tenant, a.Resources.Slots}},
	}
	if a.HoldMicro > 0 {
		w.holds = append(w.holds, hold{a.Attempt, "money", a.Tenant, a.HoldMicro})
	}
	if a.Lane != "" {
		w.holds = append(w.holds, hold{a.Attempt, "lane", laneAccount(a), 1})
	}
	return w
}

// commitWinners makes the Attempts with their holds and events, the Runs active, and counts the runners' sequences on. A
// lane that somebody took in another pool meanwhile is seen by one row less, and all is looked at again.
func (s *Store) commitWinners(ctx context.Context, tx *sql.Tx, all []winner) error {
	if len(all) == 0 {
		return nil
	}
	var holds []hold
	var waited, made []string
	sequences := map[string]winner{}
	for _, w := range all {
		waited, made = append(waited, w.Run), append(made, w.Attempt)
		holds, sequences[w.Runner] = append(holds, w.holds...), w
	}
	last := make([]winner, 0, len(sequences))
	for _, runner := range slices.Sorted(maps.Keys(sequences)) {
		last = append(last, sequences[runner])
	}
	attempts, err := json.Marshal(all)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		query    string
		elements any
		rows     int
	}{
		{`UPDATE runs SET state = 'active', reason = '', fence = fence + 1, version = version + 1
			WHERE state = 'queued' AND id IN (SELECT ` + s.engine.text + ` FROM ` + s.engine.elements + `)`, waited, len(all)},
		{`UPDATE runners SET sequence = w.sequence
			FROM (SELECT value ->> 'runner' AS runner, CAST(value ->> 'sequence' AS BIGINT) AS sequence FROM ` + s.engine.elements + `) AS w
			WHERE id = w.runner`, last, len(last)},
		{`INSERT INTO attempts (id, run, tenant, pool, runner, number, fence, state, reason, detail, sequence, beats, lease_until, resources,
				assigned_at, started_at, ended_at, decision, report, cost)
			SELECT value ->> 'attempt', value ->> 'run', value ->> 'tenant', value ->> 'pool', value ->> 'runner', CAST(value ->> 'fence' AS BIGINT),
				CAST(value ->> 'fence' AS BIGINT), 'assigned', '', '', CAST(value ->> 'sequence' AS BIGINT), 0, CAST(value ->> 'lease' AS BIGINT),
				value ->> 'resources', CAST(value ->> 'at' AS BIGINT), 0, 0, value ->> 'decision', '', 0 FROM ` + s.engine.elements, attempts, len(all)},
		{`INSERT INTO holds (attempt, kind, account, amount)
			SELECT value ->> 'attempt', value ->> 'kind', value ->> 'account', CAST(value ->> 'amount' AS BIGINT) FROM ` + s.engine.elements + ` WHERE true
			ON CONFLICT DO NOTHING`, holds, len(holds)},
		{`INSERT INTO run_events (run, seq, at, kind, attempt, reason, detail)
			SELECT a.run, (SELECT COALESCE(MAX(e.seq), 0) + 1 FROM run_events e WHERE e.run = a.run), a.assigned_at, '` + runs.Assigned + `', a.id, '', 'on runner ' || a.runner
			FROM attempts a WHERE a.id IN (SELECT ` + s.engine.text + ` FROM ` + s.engine.elements + `)`, made, len(all)},
	} {
		if err := execAll(ctx, tx, one.query, one.elements, one.rows); err != nil {
			return err
		}
	}
	return nil
}

// execAll runs a statement over elements, which must change so many rows.
func execAll(ctx context.Context, tx *sql.Tx, query string, elements any, rows int) error {
	text, marshalled := elements.([]byte)
	if !marshalled {
		var err error
		if text, err = json.Marshal(elements); err != nil {
			return err
		}
	}
	n, err := exec(ctx, tx, query, string(text))
	if err == nil && n != int64(rows) {
		return errLost
	}
	return err
}
