// Package schedules makes Runs at the times of calendar rules: each fire once, whatever stops or moves the clock, and
// spread so that many rules of one minute are no burst.
package schedules

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Config is what the service needs to know.
type Config struct {
	NewID        func() string // makes unique ids
	Tick         time.Duration // how often due schedules are looked for; 1 s when zero
	Grace        time.Duration // a fire up to this late is in time for every policy; 5 min when zero
	Keep         time.Duration // how long fires are kept; 30 days when zero
	MaxPerTenant int           // schedules of one tenant; 1000 when zero
	Log          *slog.Logger  // nil: nowhere
}

// Validate names the first field that is out of range, after filling in defaults.
func (c *Config) Validate() error {
	for _, d := range []struct {
		field      string
		value      *time.Duration
		normal     time.Duration
		least, top time.Duration
	}{
		{"Tick", &c.Tick, time.Second, 10 * time.Millisecond, time.Minute},
		{"Grace", &c.Grace, 5 * time.Minute, time.Second, 24 * time.Hour},
		{"Keep", &c.Keep, 30 * 24 * time.Hour, 24 * time.Hour, 10 * 365 * 24 * time.Hour},
	} {
		if *d.value == 0 {
			*d.value = d.normal
		}
		if *d.value < d.least || *d.value > d.top {
			return fault.Invalid(d.field, "must be between %s and %s, is %s", d.least, d.top, *d.value)
		}
	}
	if c.MaxPerTenant == 0 {
		c.MaxPerTenant = 1000
	}
	if c.MaxPerTenant < 0 {
		return fault.Invalid("MaxPerTenant", "must be positive")
	}
	if c.NewID == nil {
		return fault.Invalid("NewID", "must be set")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Service keeps schedules and fires them.
type Service struct {
	cfg       Config
	store     Store
	templates Templates
	submitter Submitter
	clock     clock.Clock

	previewing sync.Mutex // held while a preview is computed: one at a time
}

// New makes the service; nothing fires before Run.
func New(cfg Config, store Store, templates Templates, submitter Submitter, clk clock.Clock) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, store: store, templates: templates, submitter: submitter, clock: clk}, nil
}

// now is the wall time as the store keeps it.
func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

// home is the tenant a caller means: its own unless an operator names another. Links have none.
func home(actor identity.Principal, tenant string) (string, error) {
	if tenant == "" {
		tenant = actor.Tenant
	}
	if !actor.Operator && (actor.Kind == identity.Link || tenant != actor.Tenant) {
		return "", fault.Missing("tenant")
	}
	return tenant, nil
}

// Schedule finds a schedule of the caller's tenant, or of the one an operator names.
func (s *Service) Schedule(ctx context.Context, actor identity.Principal, tenant, name string) (Schedule, error) {
	tenant, err := home(actor, tenant)
	if err != nil {
		return Schedule{}, err
	}
	return s.store.Schedule(ctx, tenant, name)
}

// List lists schedules by name, from the one after `after`; next is empty on the last page.
func (s *Service) List(ctx context.Context, actor identity.Principal, tenant, after string, limit int) (page []Schedule, next string, err error) {
	if tenant, err = home(actor, tenant); err != nil {
		return nil, "", err
	}
	limit = identity.PageSize(limit)
	page, err = s.store.ListSchedules(ctx, tenant, after, limit+1)
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name
	}
	return page, next, err
}

// Put makes a schedule (expected 0) or replaces the plan of one at the expected revision. Nothing fires on the change: a
// plan with other times counts from now, one with the same times keeps its next fire (R25). A rule that never fires is
// refused, and so is a template that could not be submitted now.
func (s *Service) Put(ctx context.Context, actor identity.Principal, tenant, name string, plan Plan, expected int64) (Schedule, error) {
	next, rule, was, err := s.changed(ctx, actor, tenant, name, plan)
	if err != nil {
		return Schedule{}, err
	}
	switch {
	case was.Revision == 0 && expected != 0:
		return Schedule{}, fault.Missing("schedule")
	case was.Revision != expected:
		return Schedule{}, identity.RevisionMismatch("schedule", was.Revision)
	}
	now := s.now()
	next.Revision, next.ChangedAt = expected+1, now
	action := "schedule.changed"
	if expected == 0 {
		next.ID, next.CreatedAt, action = "sch_"+s.cfg.NewID(), now, "schedule.made"
	}
	if expected == 0 || !next.Plan.sameTimes(was.Plan) {
		next.from(rule, now)
	}
	detail := fmt.Sprintf("%s: %s in %s, revision %d", name, next.Plan.Rule, next.Plan.Zone, next.Revision)
	err = s.store.PutSchedule(ctx, next, expected, s.cfg.MaxPerTenant, s.entry(actor, next, action, detail))
	if err != nil {
		return Schedule{}, err
	}
	return next, nil
}

// changed is a schedule under a plan that was checked, and what it is now; without one so far, that is empty.
func (s *Service) changed(ctx context.Context, actor identity.Principal, tenant, name string, plan Plan) (next Schedule, r Rule, was Schedule, err error) {
	if tenant, err = home(actor, tenant); err != nil {
		return next, r, was, err
	}
	if !nameForm.MatchString(name) {
		return next, r, was, fault.Invalid("name", "must be 1 to 63 of a-z 0-9 . _ -, beginning with a letter or digit")
	}
	if plan, err = plan.whole(); err != nil {
		return next, r, was, err
	}
	if r, err = ParseRule(plan.Rule, plan.Zone); err != nil {
		return next, r, was, err
	}
	if r.Next(s.now()).IsZero() {
		return next, r, was, fault.Invalid("rule", "never fires: no day has this day of month, month and day of week")
	}
	if was, err = s.store.Schedule(ctx, tenant, name); err != nil && !fault.Is(err, fault.NotFound) {
		return next, r, was, err
	}
	owner := actor
	owner.Tenant = tenant
	shape, err := s.templates.CheckTemplate(ctx, owner, plan.Template)
	if err != nil {
		return next, r, was, inTemplate(err)
	}
	next = was
	next.Tenant, next.Name, next.Owner, next.Plan, next.Shape = tenant, name, actor.ID, plan, shape
	return next, r, was, nil
}

// inTemplate names a wrong field of a template as it stands in the plan.
func inTemplate(err error) error {
	f := fault.From(err)
	if f.Code != fault.InvalidInput {
		return err
	}
	named := *f
	named.Details = nil
	for _, d := range f.Details {
		named.Details = append(named.Details, fault.Detail{Field: "template." + d.Field, Problem: d.Problem})
	}
	return &named
}

// Delete removes a schedule at the expected revision, with its list of fires; Runs that it made stay.
func (s *Service) Delete(ctx context.Context, actor identity.Principal, tenant, name string, expected int64) error {
	was, err := s.Schedule(ctx, actor, tenant, name)
	if err != nil {
		return err
	}
	if was.Revision != expected {
		return identity.RevisionMismatch("schedule", was.Revision)
	}
	return s.store.DeleteSchedule(ctx, was, s.entry(actor, was, "schedule.removed", name))
}

// Pause stops a schedule, or lets it go on from now: what was due in between is not caught up (R25). Neither changes whose
// its Runs are. It is done to the schedule as it is now; pausing one that is paused changes nothing.
func (s *Service) Pause(ctx context.Context, actor identity.Principal, tenant, name string, paused bool) (Schedule, error) {
	const tries = 5
	var err error
	for range tries {
		var was Schedule
		if was, err = s.Schedule(ctx, actor, tenant, name); err != nil || was.Paused == paused {
			return was, err
		}
		var rule Rule
		if rule, err = ParseRule(was.Plan.Rule, was.Plan.Zone); err != nil {
			return Schedule{}, err
		}
		next, now, action := was, s.now(), "schedule.resumed"
		if paused {
			action = "schedule.paused"
		}
		next.Paused, next.Revision, next.ChangedAt = paused, was.Revision+1, now
		next.from(rule, now)
		err = s.store.PutSchedule(ctx, next, was.Revision, s.cfg.MaxPerTenant, s.entry(actor, next, action, name))
		if err == nil {
			return next, nil
		}
		if !fault.Is(err, fault.RevisionMismatch) {
			break
		}
	}
	return Schedule{}, err
}

// Fires lists what a schedule fired, latest first, below before unless that is zero; older is where to go on, zero at the
// end.
func (s *Service) Fires(ctx context.Context, actor identity.Principal, tenant, name string, before time.Time, limit int) (page []Fire, older time.Time, err error) {
	of, err := s.Schedule(ctx, actor, tenant, name)
	if err != nil {
		return nil, older, err
	}
	limit = identity.PageSize(limit)
	page, err = s.store.ListFires(ctx, of.ID, before, limit+1)
	if len(page) > limit {
		page = page[:limit]
		older = page[limit-1].Instant
	}
	return page, older, err
}

func (s *Service) entry(actor identity.Principal, of Schedule, action, detail string) audit.Entry {
	return audit.Entry{ID: s.cfg.NewID(), At: s.now(), Tenant: of.Tenant, Actor: actor.ID, Action: action, Target: of.ID, Detail: detail}
}
