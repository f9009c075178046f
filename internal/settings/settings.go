// Package settings keeps what operators change of the download queue at run time: one record over the environment's
// defaults, checked against this server, stored by compare-and-set, applied without a restart (D-9).
package settings

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// rereadEvery is how often the stored revision is looked at, so that a change made through another process arrives
// (D-9.3).
const rereadEvery = 10 * time.Second

// Config is what the settings lie on.
type Config struct {
	Environment downloads.Settings // runs with an empty record
	NewID       func() string      // makes unique ids
	Log         *slog.Logger       // nil: nowhere
}

// Service keeps the queue on the stored record.
type Service struct {
	environment downloads.Settings
	newID       func() string
	log         *slog.Logger
	store       Store
	queue       Queue
	clock       clock.Clock

	playing sync.Mutex // held while a dry run plays the queue: one at a time

	mu      sync.Mutex // guards all below and keeps revisions in order; never held over the database
	seen    Stored     // the newest record known here
	record  api.DownloadSettings
	running downloads.Settings
	applied int64  // revision that runs; 0: the environment
	unfit   string // why the newest record does not run
	unread  string // why the record could not be read
}

// New makes the service. The queue runs on the environment until Load or Run find a record.
func New(cfg Config, store Store, queue Queue, clk clock.Clock) (*Service, error) {
	if cfg.NewID == nil {
		return nil, fault.Invalid("NewID", "must be set")
	}
	if err := cfg.Environment.Validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		environment: cfg.Environment, newID: cfg.NewID, log: cfg.Log, store: store, queue: queue, clock: clk,
		seen: Stored{Record: "{}"}, running: cfg.Environment,
	}, nil
}

// Run reads the record again and again until the context ends. A database that fails is asked again; the queue runs on
// what it has (D-9.3).
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.Load(ctx)
		}
	}
}

// Load reads the record and applies it if it is newer than the one known (D-9.4). What keeps it from running is in
// Problem.
func (s *Service) Load(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, rereadEvery/2)
	defer cancel()
	stored, err := s.store.DownloadSettings(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && s.unread == "" {
			s.log.Warn("the download settings could not be read; those that run stay", "error", err)
		}
		s.unread = "the record could not be read from the database; it is tried again every 10 seconds"
		return
	}
	s.unread = ""
	s.take(stored)
}

// take applies a newer record, or the environment when the record cannot work here. The caller holds the lock.
func (s *Service) take(stored Stored) {
	if stored.Revision <= s.seen.Revision {
		return
	}
	s.seen, s.unfit = stored, ""
	record, err := Parse(stored.Record)
	s.record = record
	var next downloads.Settings
	if err == nil {
		next, err = Overlay(s.environment, record)
	}
	if err == nil {
		err = s.queue.Configure(next)
	}
	if err == nil {
		s.running, s.applied = next, stored.Revision
		s.log.Info("download settings applied", "revision", stored.Revision, "by", stored.By)
		return
	}
	s.unfit = "the stored record does not fit this server, which runs on its environment: " + fault.From(err).Message
	s.log.Warn("the stored download settings do not fit this server; its environment runs", "revision", stored.Revision, "error", err)
	if err := s.queue.Configure(s.environment); err != nil {
		s.log.Error("the environment's download settings were refused; the earlier ones run on", "error", err)
		return
	}
	s.running, s.applied = s.environment, 0
}

// Problem says why the stored record does not run, or is empty. It names no id.
func (s *Service) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem()
}

func (s *Service) problem() string {
	if s.unread != "" {
		return s.unread
	}
	return s.unfit
}

// State answers what is stored and what runs; a newer stored record is applied first (D-9.4). Operators only.
func (s *Service) State(ctx context.Context, actor identity.Principal) (api.DownloadSettingsState, error) {
	if err := needOperator(actor); err != nil {
		return api.DownloadSettingsState{}, err
	}
	s.Load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(), nil
}

// state is the answer as things are. The caller holds the lock.
func (s *Service) state() api.DownloadSettingsState {
	out := api.DownloadSettingsState{
		Revision: s.seen.Revision, Running: s.applied, Settings: s.record, Effective: s.effective(),
		Environment: wire(s.environment, nil), Admission: s.running.Admission(), Problem: s.problem(),
		ChangedBy: s.seen.By, ChangedByName: s.seen.ByName,
	}
	if !s.seen.At.IsZero() {
		at := s.seen.At
		out.ChangedAt = &at
	}
	return out
}

// effective is what runs, in full. The caller holds the lock.
func (s *Service) effective() api.DownloadSettings {
	if s.applied == 0 {
		return wire(s.environment, nil)
	}
	return wire(s.running, s.record.Windows)
}

// Change replaces the record if it still is at the expected revision, and applies it at once (D-9.2, D-9.3, D-9.5). A
// dry run stores nothing. Operators only.
func (s *Service) Change(ctx context.Context, actor identity.Principal, c api.DownloadSettingsChange) (api.DownloadSettingsState, error) {
	if err := needOperator(actor); err != nil {
		return api.DownloadSettingsState{}, err
	}
	if len(c.Settings.Windows) == 0 {
		c.Settings.Windows = nil // no class named is as good as no windows
	}
	next, err := Overlay(s.environment, c.Settings)
	if err != nil {
		return api.DownloadSettingsState{}, err
	}
	before, err := s.current(ctx, c.ExpectedRevision)
	if err != nil {
		return api.DownloadSettingsState{}, err
	}
	changes := differences(before.Effective, wire(next, c.Settings.Windows), c.Settings)
	if c.DryRun {
		before.Changes = changes
		return s.dryRun(ctx, before, next, c)
	}
	fields := Fields(before.Settings, c.Settings)
	if len(fields) > 0 || before.Problem != "" {
		if err := s.write(ctx, actor, c, fields); err != nil {
			return api.DownloadSettingsState{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state()
	out.Changes = changes
	return out, nil
}

// current is the state at the expected revision, freshly read.
func (s *Service) current(ctx context.Context, expected int64) (api.DownloadSettingsState, error) {
	stored, err := s.store.DownloadSettings(ctx)
	if err != nil {
		return api.DownloadSettingsState{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = ""
	s.take(stored)
	if s.seen.Revision != expected {
		return api.DownloadSettingsState{}, identity.RevisionMismatch("record of settings", s.seen.Revision)
	}
	return s.state(), nil
}

// write stores a record that was checked and applies it.
func (s *Service) write(ctx context.Context, actor identity.Principal, c api.DownloadSettingsChange, fields []string) error {
	record, err := Format(c.Settings)
	if err != nil {
		return err
	}
	at := s.clock.Wall().UTC().Truncate(time.Millisecond)
	next := Stored{Revision: c.ExpectedRevision + 1, Record: record, At: at, By: actor.ID, ByName: actor.Name}
	entry := audit.Entry{
		ID: s.newID(), At: at, Tenant: actor.Tenant, Actor: actor.ID, Action: "download_settings.changed", Target: "download_settings",
		Detail: strings.Join(fields, ", ") + " -> " + record,
	}
	if err := s.store.ChangeDownloadSettings(ctx, next, fields, entry); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(next)
	return nil
}

// History lists the revisions, newest first, below before unless that is 0; older is where to go on, 0 at the end.
// Operators only.
func (s *Service) History(ctx context.Context, actor identity.Principal, before int64, limit int) (page []Change, older int64, err error) {
	if err := needOperator(actor); err != nil {
		return nil, 0, err
	}
	limit = identity.PageSize(limit)
	page, err = s.store.DownloadSettingsHistory(ctx, before, limit+1)
	if err != nil {
		return nil, 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		older = page[limit-1].Revision
	}
	return page, older, nil
}

func needOperator(p identity.Principal) error {
	if !p.Operator {
		return fault.New(fault.Forbidden, "only a system operator may see or change the settings of the download queue")
	}
	return nil
}
