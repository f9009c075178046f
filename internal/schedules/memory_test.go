package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// memory is a store, the templates, and the Runs that were made.
type memory struct {
	mu        sync.Mutex
	schedules map[string]Schedule
	fires     map[string]Fire
	runs      map[string]string // by key
	order     []Fire            // submits, each try
	answer    func(f Fire, try int) error
	audit     []audit.Entry
}

func newMemory() *memory {
	return &memory{schedules: map[string]Schedule{}, fires: map[string]Fire{}, runs: map[string]string{}}
}

func (m *memory) list(keep func(Schedule) bool, less func(a, b Schedule) int, limit int) (out []Schedule, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.schedules {
		if keep(d) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, less)
	return out[:min(limit, len(out))], nil
}

func byID(a, b Schedule) int { return cmp.Compare(a.ID, b.ID) }

func (m *memory) Schedule(_ context.Context, tenant, name string) (Schedule, error) {
	all, _ := m.list(func(d Schedule) bool { return d.Tenant == tenant && d.Name == name }, byID, 1)
	if len(all) == 0 {
		return Schedule{}, fault.Missing("schedule")
	}
	return all[0], nil
}

func (m *memory) ListSchedules(_ context.Context, tenant, after string, limit int) ([]Schedule, error) {
	return m.list(func(d Schedule) bool { return d.Tenant == tenant && d.Name > after }, func(a, b Schedule) int { return cmp.Compare(a.Name, b.Name) }, limit)
}

func (m *memory) SchedulesOnPool(_ context.Context, pool, after string, limit int) ([]Schedule, error) {
	return m.list(func(d Schedule) bool { return d.Shape.Pool == pool && !d.Due.IsZero() && d.ID > after }, byID, limit)
}

func (m *memory) ActiveSchedules(_ context.Context, after string, limit int) ([]Schedule, error) {
	return m.list(func(d Schedule) bool { return !d.Due.IsZero() && d.ID > after }, byID, limit)
}

func (m *memory) DueSchedules(_ context.Context, now time.Time, limit int) ([]Schedule, error) {
	return m.list(func(d Schedule) bool { return !d.Due.IsZero() && !d.Due.After(now) }, func(a, b Schedule) int { return a.Due.Compare(b.Due) }, limit)
}

func (m *memory) PutSchedule(_ context.Context, d Schedule, expected int64, _ int, e audit.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.schedules[d.ID].Revision != expected {
		return identity.RevisionMismatch("schedule", m.schedules[d.ID].Revision)
	}
	m.schedules[d.ID] = d
	m.audit = append(m.audit, e)
	for k, f := range m.fires {
		if d.Paused && f.Schedule == d.ID && f.State == Pending {
			f.State = Dropped
			m.fires[k] = f
		}
	}
	return nil
}

func (m *memory) DeleteSchedule(_ context.Context, d Schedule, e audit.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.schedules, d.ID)
	m.audit = append(m.audit, e)
	return nil
}

func (m *memory) ClaimFires(_ context.Context, claims []Claim) (won []Fire, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claims {
		d := m.schedules[c.Schedule]
		if d.Revision != c.Revision || !d.Instant.Equal(c.From) || d.Due.IsZero() {
			continue
		}
		d.Instant, d.Due = c.Instant, c.Due
		m.schedules[d.ID] = d
		for _, f := range c.Fires {
			if _, there := m.fires[f.Key()]; !there {
				m.fires[f.Key()] = f
				won = append(won, f)
			}
		}
	}
	return won, nil
}

func (m *memory) PendingFires(_ context.Context, now, beyond time.Time, limit int) (out []Fire, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.fires {
		if f.State == Pending && (!f.TryAt.After(now) || f.TryAt.After(beyond)) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Fire) int { return cmp.Or(a.TryAt.Compare(b.TryAt), cmp.Compare(a.Key(), b.Key())) })
	return out[:min(limit, len(out))], nil
}

func (m *memory) TakeFire(_ context.Context, f Fire, tryAt time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.fires[f.Key()]
	if was.State != Pending || !was.TryAt.Equal(f.TryAt) {
		return false, nil
	}
	was.TryAt = tryAt
	m.fires[f.Key()] = was
	return true, nil
}

func (m *memory) SettleFire(_ context.Context, f Fire) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fires[f.Key()].State == Pending {
		m.fires[f.Key()] = f
	}
	return nil
}

func (m *memory) ListFires(_ context.Context, schedule string, before time.Time, limit int) (out []Fire, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.fires {
		if f.Schedule == schedule && (before.IsZero() || f.Instant.Before(before)) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Fire) int { return b.Instant.Compare(a.Instant) })
	return out[:min(limit, len(out))], nil
}

func (m *memory) PruneFires(context.Context, time.Time, int) (int64, error) { return 0, nil }

func (m *memory) CheckTemplate(_ context.Context, _ identity.Principal, template json.RawMessage) (Shape, error) {
	var t struct {
		Pool    string
		Slots   int64
		Seconds int64
	}
	if err := json.Unmarshal(template, &t); err != nil || t.Pool == "" {
		return Shape{}, fault.Invalid("pool", "must be given")
	}
	return Shape{Pool: t.Pool, Slots: t.Slots, Duration: time.Duration(t.Seconds) * time.Second}, nil
}

func (m *memory) SubmitScheduled(_ context.Context, f Fire) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order = append(m.order, f)
	if run, there := m.runs[f.Key()]; there {
		return run, nil
	}
	if m.answer != nil {
		if err := m.answer(f, f.Tries); err != nil {
			return "", err
		}
	}
	m.runs[f.Key()] = fmt.Sprintf("run_%d", len(m.runs)+1)
	return m.runs[f.Key()], nil
}

// made are the instants for which there is a Run, in order.
func (m *memory) made(zone *time.Location) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.fires {
		if f.State == Submitted {
			out = append(out, f.Instant.In(zone).Format("01-02 15:04"))
		}
	}
	slices.Sort(out)
	return out
}

// hands is a clock that the test sets; its monotonic side follows unless the wall alone is set.
type hands struct {
	mu   sync.Mutex
	wall time.Time
	mono clock.Mono
}

func (h *hands) Now() clock.Mono { h.mu.Lock(); defer h.mu.Unlock(); return h.mono }
func (h *hands) Wall() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.wall }
func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall, h.mono = h.wall.Add(d), h.mono.Add(d)
}
func (h *hands) set(t time.Time) { h.mu.Lock(); defer h.mu.Unlock(); h.wall = t }

func service(t *testing.T, m *memory, clk clock.Clock) *Service {
	t.Helper()
	var mu sync.Mutex
	n := len(m.schedules) * 1000
	s, err := New(Config{NewID: func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint(n) }}, m, m, m, clk)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ann() identity.Principal {
	return identity.Principal{ID: "ann", Kind: identity.User, Tenant: "acme", Name: "ann"}
}

func plan(rule, zone string) Plan {
	return Plan{Rule: rule, Zone: zone, Template: json.RawMessage(`{"pool":"default","slots":1,"seconds":600}`)}
}

func put(t *testing.T, s *Service, name string, p Plan, expected int64) Schedule {
	t.Helper()
	d, err := s.Put(t.Context(), ann(), "", name, p, expected)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// step lets time pass in steps, firing after each.
func step(t *testing.T, s *Service, h *hands, steps int, d time.Duration) {
	t.Helper()
	for range steps {
		h.pass(d)
		if err := s.Fire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func berlin(text string) time.Time {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		panic(err)
	}
	return at
}
