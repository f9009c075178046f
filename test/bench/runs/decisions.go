package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of the plain inserts

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/dispatch"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/pools"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/store"
)

const (
	batch      = 200 // decisions in one transaction, as the dispatcher has it
	fairRounds = 60
	poolName   = "bench"
)

// yard is a database with a pool, its owner and runners.
type yard struct {
	*store.Store
	owner   dispatcher.Owner
	runners []string
	at      time.Time
	n       int
}

func openYard(ctx context.Context, dir, name string, runners int) (*yard, error) {
	s, err := store.OpenSQLite(ctx, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	y := &yard{Store: s, at: time.Now().UTC().Truncate(time.Millisecond)}
	entry := audit.Entry{ID: store.NewID(), At: y.at, Action: "bench"}
	if err := s.CreatePool(ctx, pools.Pool{Name: poolName, Revision: 1, CreatedAt: y.at}, entry); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if y.owner, err = s.TakePool(ctx, poolName, "bench", 0); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for i := range runners {
		entry.ID = store.NewID()
		hash := fmt.Sprint("hash", i)
		if err := s.CreateToken(ctx, pools.Token{ID: store.NewID(), Pool: poolName, Hash: hash, ExpiresAt: y.at.Add(time.Hour)}, entry); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		entry.ID = store.NewID()
		r, err := s.RegisterRunner(ctx, hash, pools.Runner{
			ID: "rnr_" + store.NewID(), Name: fmt.Sprint("m", i), Hash: hash, Capacity: api.Resources{Slots: 1000}, Protocol: 1, CreatedAt: y.at,
		}, y.at, entry)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		y.runners = append(y.runners, r.ID)
	}
	return y, nil
}

// submit stores n Runs of a thousand tenants in turn, and lists them.
func (y *yard) submit(ctx context.Context, n int) (all []runs.Run, err error) {
	var sub runs.Submission
	for range n {
		y.n++
		tenant := fmt.Sprintf("tnt_%04d", y.n*7919%1000)
		r := runs.Run{
			ID: "run_" + store.NewID(), Tenant: tenant, Pool: poolName, State: lifecycle.Queued, Version: 1, CreatedAt: y.at, CreatedBy: "acc_" + store.NewID(),
			CreatedName: "bench", NextEligible: y.at, EligibleAt: y.at, Class: "background", Package: "prices@1.2.3", Inserted: y.at.UnixMilli(),
		}
		sub.Runs = append(sub.Runs, runs.NewRecord{Run: r, Spec: specification()})
		all = append(all, r)
	}
	sub.Tenant, sub.At = "tnt_0000", y.at
	_, err = y.SubmitRuns(ctx, sub)
	return all, err
}

// specification is what a Run of a package usually was asked to be.
func specification() runs.Spec {
	return runs.Spec{
		Request: api.NewRun{Package: "prices@1.2.3", Inputs: map[string]api.Input{"window": {Value: json.RawMessage(`20`)}}}, Command: []string{"./prices", "--window", "20"},
		Package: &runs.Object{Repository: "packages", Digest: "sha256:" + strings.Repeat("ab", 32), Size: 1 << 20}, PackageName: "prices",
		Resources: api.Resources{Slots: 1, MilliCPU: 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30}, Timeout: 3600, Grace: 10, LogBytes: 1 << 20, Pids: 512,
		Retry: api.Retry{Failures: 1, Losses: 3, BackoffSeconds: 10}, Inputs: map[string]runs.BoundInput{"window": {Value: "20"}},
		Outputs: []api.Output{{Name: "table", Path: "table.csv"}, {Name: "chart", Path: "chart.svg"}}, HoldMicro: 3_600_000, PriceMicro: 1000,
	}
}

// decisions measures committed decisions: the machine picks a batch of Runs of a thousand tenants, the store commits them
// with their Attempts, holds and events: six rows in four tables with thirteen indexes. Beside them plain inserts: one
// transaction with as many prepared inserts of one row, as long as those six together, into a table whose only index is
// its primary key, by the same driver, on the same disk, flushed at the commit likewise.
func (b *bench) decisions(ctx context.Context) error {
	y, err := openYard(ctx, b.dir, "decisions.db", 50)
	if err != nil {
		return err
	}
	defer func() { _ = y.Close() }() // the folder goes next
	plain, err := openPlain(ctx, filepath.Join(b.dir, "plain.db"))
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }()
	m, err := dispatch.New(dispatch.Default())
	if err != nil {
		return err
	}
	for _, runner := range y.runners {
		if err := m.SetRunner(1, dispatch.Runner{ID: runner, Capacity: dispatch.Vector{dispatch.Slots: 1000}}); err != nil {
			return err
		}
	}
	var submits []time.Duration
	for range fairRounds {
		began := time.Now()
		all, err := y.submit(ctx, batch)
		if err != nil {
			return err
		}
		submits = append(submits, time.Since(began))
		if err := queue(m, all); err != nil {
			return err
		}
	}
	var r ratios
	var own, base []time.Duration
	for range fairRounds {
		fair, err := timed(func() error { return y.decide(ctx, m) })
		if err != nil {
			return err
		}
		insert, err := timed(func() error { return plain.insert(ctx) })
		if err != nil {
			return err
		}
		r.add(insert, fair)
		own, base = append(own, fair), append(base, insert)
	}
	b.atLeast("runs_committed_decisions_vs_plain_inserts", r.median(), 0.5)
	fmt.Printf("# a batch of %d: decided and committed in %v (%.0f/s), plainly inserted in %v (%.0f/s); as many Runs were submitted in %v\n", batch,
		median(own).Round(10*time.Microsecond), batch/median(own).Seconds(), median(base).Round(10*time.Microsecond), batch/median(base).Seconds(), median(submits).Round(10*time.Microsecond))
	return nil
}

// queue gives Runs to the machine.
func queue(m *dispatch.Machine, all []runs.Run) error {
	for _, r := range all {
		if err := m.SetTenant(1, dispatch.Tenant{ID: r.Tenant, Weight: 1}); err != nil {
			return err
		}
		err := m.Submit(1, dispatch.Run{
			ID: r.ID, Tenant: r.Tenant, Need: dispatch.Vector{dispatch.Slots: 1}, Timeout: time.Hour, Expected: time.Minute, Eligible: true, EligibleAt: 1,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// decide is one batch from the machine to the disk.
func (y *yard) decide(ctx context.Context, m *dispatch.Machine) error {
	y.n++
	all := m.Decide(clock.Mono(time.Duration(y.n)*time.Millisecond), batch)
	if len(all) != batch {
		return fmt.Errorf("%d decisions", len(all))
	}
	rows := make([]dispatcher.Assignment, len(all))
	for i, d := range all {
		text, err := json.Marshal(map[string]any{"seq": d.Seq, "share": d.Share, "charge": d.Charge, "start": d.Start})
		if err != nil {
			return err
		}
		rows[i] = dispatcher.Assignment{
			Run: d.Run, Tenant: d.Tenant, Attempt: "att_" + store.NewID(), Runner: d.Runner, Resources: api.Resources{Slots: 1, MilliCPU: 1000, MemoryBytes: 1 << 30},
			HoldMicro: 3_600_000, At: y.at, LeaseUntil: y.at.Add(90 * time.Second), Decision: string(text),
		}
	}
	out, err := y.Assign(ctx, y.owner, rows)
	for _, o := range out {
		if !o.Won {
			return fmt.Errorf("a decision was lost: %s", o.Loss)
		}
	}
	return err
}

// plainTable is the baseline: a table of its own.
type plainTable struct{ *sql.DB }

func openPlain(ctx context.Context, file string) (plainTable, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return plainTable{}, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE plain (id TEXT PRIMARY KEY, run TEXT NOT NULL, tenant TEXT NOT NULL, state TEXT NOT NULL,
		at BIGINT NOT NULL, resources TEXT NOT NULL, decision TEXT NOT NULL, others TEXT NOT NULL)`)
	if err != nil {
		return plainTable{}, errors.Join(err, db.Close())
	}
	return plainTable{db}, nil
}

// others stands for what a decision writes beside the Attempt: the Run's row, its holds and its event.
var others = strings.Repeat("0123456789", 50)

// insert is one transaction with a batch of inserts.
func (p plainTable) insert(ctx context.Context) error {
	tx, err := p.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing once it is committed
	insert, err := tx.PrepareContext(ctx, `INSERT INTO plain (id, run, tenant, state, at, resources, decision, others) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for i := range batch {
		if _, err := insert.ExecContext(ctx, "att_"+store.NewID(), "run_"+store.NewID(), fmt.Sprintf("tnt_%04d", i), "assigned", time.Now().UnixMilli(),
			`{"slots":1,"milliCpu":1000,"memoryBytes":1073741824,"diskBytes":1073741824}`, `{"seq":12345,"share":20000,"charge":1200000,"start":123456789}`, others); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// commit is one plain durable transaction: a row of the table.
func (p plainTable) commit(ctx context.Context) error {
	_, err := p.ExecContext(ctx, `INSERT INTO plain (id, run, tenant, state, at, resources, decision, others) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		"att_"+store.NewID(), "run_"+store.NewID(), "tnt_0000", "assigned", time.Now().UnixMilli(), "{}", "{}", "")
	return err
}
