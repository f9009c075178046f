package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/forerun"
	"github.com/roadstead/roadstead/internal/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Store in memory that can be away.
type memory struct {
	mu      sync.Mutex
	all     []Change
	entries []audit.Entry
	away    bool
}

var errAway = errors.New("the database is away")

func (m *memory) DownloadSettings(context.Context) (Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return Stored{}, errAway
	}
	return m.last(), nil
}

func (m *memory) last() Stored {
	if len(m.all) == 0 {
		return Stored{Record: "{}"}
	}
	return m.all[len(m.all)-1].Stored
}

func (m *memory) ChangeDownloadSettings(_ context.Context, next Stored, fields []string, e audit.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last().Revision != next.Revision-1 {
		return identity.RevisionMismatch("record", m.last().Revision)
	}
	m.all, m.entries = append(m.all, Change{next, fields}), append(m.entries, e)
	return nil
}

func (m *memory) DownloadSettingsHistory(_ context.Context, before int64, limit int) (page []Change, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.all) - 1; i >= 0 && len(page) < limit; i-- {
		if before == 0 || m.all[i].Revision < before {
			page = append(page, m.all[i])
		}
	}
	return page, nil
}

// put stores a record as another process would.
func (m *memory) put(record string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, Change{Stored: Stored{Revision: m.last().Revision + 1, Record: record}})
}

func (m *memory) set(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// queue remembers what it was configured with.
type queue struct {
	mu    sync.Mutex
	runs  downloads.Settings
	times int
	stand forerun.Queue
}

func (q *queue) Configure(s downloads.Settings) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.runs = s
	q.times++
	return nil
}

func (q *queue) Snapshot(int) forerun.Queue { return q.stand }

func (q *queue) seats() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.runs.Policy.Sessions
}

func service(t *testing.T, m *memory, q *queue) *Service {
	t.Helper()
	s, err := New(Config{Environment: environment(), NewID: func() string { return "id" }}, m, q, clock.NewSystem())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func operator() identity.Principal {
	return identity.Principal{ID: "op", Name: "ann", Kind: identity.User, Operator: true}
}

func change(t *testing.T, s *Service, revision int64, record string) (api.DownloadSettingsState, error) {
	t.Helper()
	r, err := Parse(record)
	if err != nil {
		t.Fatal(err)
	}
	return s.Change(t.Context(), operator(), api.DownloadSettingsChange{Settings: r, ExpectedRevision: revision})
}

// A change runs at once, keeps only what it changed, and leaves who did it in history and audit; {} goes back to the
// environment (D-9.1, D-9.3, D-9.5).
func TestChange(t *testing.T) {
	m, q := &memory{}, &queue{}
	s := service(t, m, q)
	got, err := change(t, s, 0, `{"sessions":2}`)
	if err != nil {
		t.Fatal(err)
	}
	if q.seats() != 2 || got.Revision != 1 || got.Running != 1 || *got.Effective.PerPrincipal != 2 || *got.Environment.Sessions != 16 || got.ChangedByName != "ann" || got.ChangedAt == nil {
		t.Errorf("got %+v with %d seats", got, q.seats())
	}
	if len(got.Changes) != 2 || got.Changes[1].Field != "perPrincipal" || got.Changes[1].Note == "" {
		t.Errorf("what was lowered is not told: %+v", got.Changes)
	}
	if m.last().Record != `{"sessions":2}` || len(m.entries) != 1 || m.entries[0].Actor != "op" || !strings.Contains(m.entries[0].Detail, "sessions") {
		t.Errorf("stored %+v, audit %+v", m.last(), m.entries)
	}
	if _, err = change(t, s, 0, `{"sessions":3}`); !fault.Is(err, fault.RevisionMismatch) {
		t.Errorf("a change from an old revision: %v", err)
	}
	if _, err = change(t, s, 1, `{"sessions":0}`); !fault.Is(err, fault.InvalidInput) || m.last().Revision != 1 {
		t.Errorf("what cannot work: %v at revision %d", err, m.last().Revision)
	}
	if got, err = change(t, s, 1, `{"sessions":2}`); err != nil || got.Revision != 1 {
		t.Errorf("no change makes revision %d, %v", got.Revision, err)
	}
	if got, err = change(t, s, 1, `{}`); err != nil || got.Revision != 2 || q.seats() != 16 || m.last().Record != `{}` {
		t.Errorf("back to the environment: %+v, %v", got, err)
	}
	page, older, err := s.History(t.Context(), operator(), 0, 1)
	if err != nil || len(page) != 1 || older != 2 || page[0].Fields[0] != "sessions" {
		t.Errorf("history %+v, %d, %v", page, older, err)
	}
}

// Only operators see or change settings.
func TestOperatorsOnly(t *testing.T) {
	s := service(t, &memory{}, &queue{})
	someone := identity.Principal{ID: "x", Kind: identity.User}
	_, err1 := s.State(t.Context(), someone)
	_, err2 := s.Change(t.Context(), someone, api.DownloadSettingsChange{})
	_, _, err3 := s.History(t.Context(), someone, 0, 0)
	for _, err := range []error{err1, err2, err3} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("got %v", err)
		}
	}
}

// A record that another process stored runs ten seconds later at the latest, and at once when somebody looks (D-9.3,
// D-9.4).
func TestFollowsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, q := &memory{}, &queue{}
		s := service(t, m, q)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		m.put(`{"sessions":5}`)
		<-time.After(rereadEvery + time.Second)
		if q.seats() != 5 {
			t.Errorf("after ten seconds %d seats", q.seats())
		}
		m.put(`{"sessions":6}`)
		if got, err := s.State(ctx, operator()); err != nil || got.Running != 2 || q.seats() != 6 {
			t.Errorf("looking applies nothing newer: %+v, %v", got, err)
		}
		times := q.times
		<-time.After(5 * rereadEvery)
		s.take(Stored{Revision: 1, Record: `{"sessions":5}`}) // an answer that was under way for long
		if q.seats() != 6 || q.times != times {
			t.Errorf("an older record was applied, or the same one again")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A database that is away at the start keeps nothing from running; the record is read when it is back (D-9.3).
func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, q := &memory{away: true}, &queue{}
		m.put(`{"sessions":5}`)
		s := service(t, m, q)
		s.Load(t.Context())
		got, err := s.State(t.Context(), operator())
		if err != nil || got.Problem == "" || s.Problem() == "" || got.Running != 0 || *got.Effective.Sessions != 16 {
			t.Errorf("while away: %+v, %v", got, err)
		}
		if _, err := change(t, s, 0, `{}`); !errors.Is(err, errAway) {
			t.Errorf("a change while away: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		m.set(false)
		<-time.After(rereadEvery + time.Second)
		if q.seats() != 5 || s.Problem() != "" {
			t.Errorf("back again: %d seats, problem %q", q.seats(), s.Problem())
		}
		cancel()
		<-ended
	})
}

// A stored record that does not fit this server leaves it on its environment, and says why; the next one that fits
// runs (D-9.3).
func TestStoredRecordThatDoesNotFit(t *testing.T) {
	for _, record := range []string{`{"sessions":2,"reserve":7}`, `{"strategy":"quantum"}`, `{"sessions":"many"}`, `no json`} {
		m, q := &memory{}, &queue{}
		s := service(t, m, q)
		if _, err := change(t, s, 0, `{"sessions":5}`); err != nil {
			t.Fatal(err)
		}
		m.put(record)
		got, err := s.State(t.Context(), operator())
		if err != nil || got.Problem == "" || got.Revision != 2 || got.Running != 0 || q.seats() != 16 || *got.Effective.Sessions != 16 {
			t.Errorf("%s: %+v, %v, %d seats", record, got, err, q.seats())
		}
		if got, err = change(t, s, 2, `{"sessions":3}`); err != nil || got.Problem != "" || got.Running != 3 || q.seats() != 3 {
			t.Errorf("after %s: %+v, %v", record, got, err)
		}
	}
}

// A dry run stores nothing and says what would change and for whom (issue item: what would change).
func TestDryRun(t *testing.T) {
	m, q := &memory{}, &queue{}
	s := service(t, m, q)
	ask := func(record string) api.DownloadSettingsState {
		t.Helper()
		r, err := Parse(record)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Change(t.Context(), operator(), api.DownloadSettingsChange{Settings: r, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask(`{"sessions":2}`); got.Forecast == nil || got.Forecast.Known || got.Forecast.Reason == "" {
		t.Errorf("without a rate: %+v", got.Forecast)
	}
	q.stand = forerun.Queue{Now: clock.Mono(time.Hour), Rate: 100 << 20}
	for n := range 60 {
		id := session.Key{byte(n), 1}
		size := int64(1+n%10) * 100 << 20
		q.stand.Waiting = append(q.stand.Waiting, session.Saved{
			Key: id, Principal: id, State: session.SavedWaiting, Class: class.Class(1 + n%2), Identified: true,
			Arrival: clock.Mono(time.Hour) - clock.Mono(time.Second)*clock.Mono(60-n), Size: size, Left: size,
		})
	}
	got := ask(`{"strategy":"smallest-first"}`)
	f := got.Forecast
	if !got.DryRun || f == nil || !f.Known || f.Truncated || f.Sessions != 60 || len(f.Classes) != 2 || q.times != 0 || len(m.all) != 0 {
		t.Fatalf("got %+v, forecast %+v; configured %d times", got, f, q.times)
	}
	for _, c := range f.Classes {
		if c.Waiting != 30 || c.After.MeanFinishSeconds >= c.Before.MeanFinishSeconds || c.Later == 0 || c.Earlier == 0 || c.Before.MaxWaitSeconds < c.Before.MeanWaitSeconds {
			t.Errorf("class %+v", c)
		}
	}
	if *got.Effective.Strategy != api.StrategySmallestFirst || len(got.Changes) != 1 {
		t.Errorf("would run %+v, changes %+v", got.Effective, got.Changes)
	}
	if got := ask(`{"strategy":"shared"}`); got.Admission != api.AdmissionPerRequest || got.Forecast.After.DrainSeconds != 0 {
		t.Errorf("shared: %s, %+v", got.Admission, got.Forecast.After)
	}
	q.stand.More = 7
	if got := ask(`{}`); !got.Forecast.Truncated || !strings.Contains(got.Forecast.Reason, fmt.Sprint(7)) || got.Forecast.Classes[0].Later != 0 {
		t.Errorf("a queue beyond the bound: %+v", got.Forecast)
	}
}
