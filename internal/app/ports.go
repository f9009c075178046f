package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/archive"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/blob"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/dispatcher"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/runs"
	"github.com/roadstead/roadstead/internal/schedules"
	"github.com/roadstead/roadstead/internal/secrets"
)

// What follows connects services that don't know each other: each type is one service as another one wants it.

func checkWith(l archive.Limits) func(io.Reader) error {
	return func(r io.Reader) error { return archive.Check(r, l) }
}

// packages is the catalog as the service of Runs wants it.
type packages struct{ catalog *catalog.Service }

func (p packages) Resolve(ctx context.Context, caller identity.Principal, ref string, inputs map[string]api.Input) (runs.Package, error) {
	v, err := p.catalog.Resolve(ctx, caller, ref)
	if err != nil {
		return runs.Package{}, err
	}
	m, err := v.Manifest()
	if err != nil {
		return runs.Package{}, err
	}
	all, err := catalog.ValidateInputs(m, inputs)
	out := runs.Package{
		Name: v.NameIn(caller.Tenant), Version: v.Version, Image: v.Kind == catalog.Image, Object: runs.Object{Digest: v.Digest, Size: v.Size},
		Command: m.Entry, Resources: m.Resources, Inputs: all, Outputs: m.Outputs, Class: m.Class, Timeout: m.Policy.TimeoutSeconds,
		MaxTimeout: m.Policy.MaxTimeoutSeconds, Grace: m.Policy.GraceSeconds, Network: m.Policy.Network, Secrets: m.Secrets,
	}
	if m.Policy.Retry != (api.Retry{}) {
		out.Retry = &m.Policy.Retry
	}
	return out, err
}

// usable is the catalog as the service of Attempts wants it.
type usable struct{ catalog *catalog.Service }

func (u usable) Check(ctx context.Context, tenant string, spec runs.Spec) error {
	if spec.PackageName == "" {
		return nil
	}
	object := spec.Package
	if object == nil {
		object = spec.Image
	}
	return u.catalog.Usable(ctx, tenant, object.Digest)
}

// storedFiles is the store of files as the service of Runs wants it.
type storedFiles struct{ artifacts *artifacts.Service }

func (f storedFiles) File(ctx context.Context, p identity.Principal, repository, path string) (runs.Object, error) {
	file, err := f.artifacts.Stat(ctx, p, repository, path)
	return runs.Object{Repository: repository, Digest: file.Digest, Size: file.Size}, err
}

// blobObjects is the folder of blobs as the service of Attempts wants it.
type blobObjects struct{ blobs *blob.Disk }

func (b blobObjects) Put(ctx context.Context, digest string, size int64, body io.Reader) error {
	_, _, err := b.blobs.Put(ctx, body, size, digest)
	return err
}

func (b blobObjects) Has(ctx context.Context, digest string, size int64) (bool, error) {
	f, err := b.blobs.Open(ctx, digest)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	return err == nil && info.Size() == size, errors.Join(err, f.Close())
}

// lateNews passes on what happened to services that are made after those that tell.
type lateNews struct {
	dispatcher *dispatcher.Service
	runs       *runs.Service
}

func (n *lateNews) Changed(pool string, ids ...string) {
	n.dispatcher.Wake(pool, ids...)
	n.runs.Changed(ids...)
}

// templates is the service of Runs as schedules want it.
type templates struct{ runs *runs.Service }

func (t templates) CheckTemplate(ctx context.Context, owner identity.Principal, template json.RawMessage) (schedules.Shape, error) {
	run, err := parseTemplate(template)
	if err != nil {
		return schedules.Shape{}, err
	}
	pool, slots, expected, err := t.runs.CheckRequest(ctx, owner, run)
	return schedules.Shape{Pool: pool, Slots: slots, Duration: expected}, err
}

func parseTemplate(text json.RawMessage) (run api.NewRun, err error) {
	if err := json.Unmarshal(text, &run); err != nil {
		return run, fault.Invalid("template", "must be what POST /api/v1/runs takes: %v", err)
	}
	return run, nil
}

// scheduled submits what a schedule fires, by the rights its owner has now.
type scheduled struct {
	runs     *runs.Service
	identity *identity.Directory
}

func (s scheduled) SubmitScheduled(ctx context.Context, f schedules.Fire) (string, error) {
	run, err := parseTemplate(f.Order.Template)
	if err != nil {
		return "", err
	}
	owner, err := s.identity.PrincipalOf(ctx, f.Order.Owner)
	if err != nil {
		return "", err
	}
	if key := f.ConcurrencyKey(); key != "" {
		run.Concurrency = &api.Concurrency{Key: key, Policy: string(f.Order.Overlap)}
	}
	out, err := s.runs.Submit(ctx, owner, runs.Request{Key: f.Key(), Route: "schedule", Body: f.Order.Template, Tenant: f.Order.Tenant}, run)
	if err != nil || len(out.Runs) == 0 {
		return "", err
	}
	if first := out.Runs[0]; first.State == "cancelled" && first.Reason == "skipped" {
		refused := fault.New(fault.Conflict, "a Run of the schedule is still there")
		refused.Reason = schedules.ReasonOverlap
		return "", refused
	}
	return out.Runs[0].ID, nil
}

// attemptSecrets is the service of secrets as that of Attempts wants it. The masker of an Attempt is made when it
// was given its secrets, and again after a restart.
type attemptSecrets struct {
	secrets *secrets.Service

	mu      sync.Mutex
	maskers map[string]masker
}

type masker struct {
	mask *secrets.Masker
	used time.Time
}

func newAttemptSecrets(s *secrets.Service) *attemptSecrets {
	return &attemptSecrets{secrets: s, maskers: map[string]masker{}}
}

func (s *attemptSecrets) Give(ctx context.Context, a runs.Attempt, spec runs.Spec) (map[string][]byte, error) {
	values, given, err := s.secrets.ForAttempt(ctx, secrets.Need{Tenant: a.Tenant, Package: spec.PackageName, Attempt: a.ID, Names: spec.Secrets})
	if err != nil {
		return nil, err
	}
	mask, _, err := s.secrets.Masks(ctx, given)
	if err != nil {
		return nil, err
	}
	s.keep(a.ID, mask)
	return values, nil
}

const (
	maskersKept = 10_000
	maskerLife  = time.Hour
)

func (s *attemptSecrets) keep(attempt string, mask *secrets.Masker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.maskers) >= maskersKept {
		for id, m := range s.maskers {
			if now.Sub(m.used) > maskerLife {
				delete(s.maskers, id)
			}
		}
	}
	s.maskers[attempt] = masker{mask, now}
}

func (s *attemptSecrets) Mask(ctx context.Context, a runs.Attempt, spec runs.Spec, lines []api.JobLine) error {
	if len(spec.Secrets) == 0 {
		return nil
	}
	s.mu.Lock()
	m, known := s.maskers[a.ID]
	s.mu.Unlock()
	if !known {
		mask, err := s.secrets.MasksOf(ctx, secrets.Need{Tenant: a.Tenant, Package: spec.PackageName, Attempt: a.ID, Names: spec.Secrets})
		if err != nil {
			return err
		}
		s.keep(a.ID, mask)
		m.mask = mask
	}
	for i := range lines {
		lines[i].Text = string(m.mask.Mask([]byte(lines[i].Text)))
	}
	return nil
}
