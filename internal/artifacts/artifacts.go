// Package artifacts keeps repositories of files: immutable revisions under paths, found by path, by digest or by link.
package artifacts

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Access says what a caller may do on a repository.
type Access interface {
	// RoleOn is fault not_found when the caller can't see the repository, or there is none.
	RoleOn(ctx context.Context, p identity.Principal, repository string) (identity.Role, error)
	// Need is the same, and fault forbidden when the role is lower than need.
	Need(ctx context.Context, p identity.Principal, repository string, need identity.Role) error
}

// Blobs keeps bytes by their digest. Methods block on the disk; whatever was acknowledged survives a crash of process
// and machine.
type Blobs interface {
	// Put stores what r gives. size is -1 when unknown; expected may be empty. Nothing is kept when r fails, the
	// digest differs (integrity_mismatch) or the disk's reserve would be touched (capacity_exceeded).
	Put(ctx context.Context, r io.Reader, size int64, expected string) (digest string, stored int64, err error)
	// Open gives a descriptor of its own to each caller.
	Open(ctx context.Context, digest string) (*os.File, error)
	// Append adds what r gives to the unfinished upload at the offset (conflict if that isn't its end) and returns
	// the new end, which is durable, also when it returns an error.
	Append(ctx context.Context, id string, offset int64, r io.Reader) (end int64, err error)
	// Offset is the durable end of the unfinished upload, 0 for one nothing was appended to.
	Offset(ctx context.Context, id string) (int64, error)
	// Seal turns the unfinished upload into an object. Repeating it gives the same answer until Discard.
	Seal(ctx context.Context, id, expected string) (digest string, size int64, err error)
	// Discard forgets the upload; the object that Seal made of it stays. An unknown id is no error.
	Discard(ctx context.Context, id string) error
	// Sweep discards uploads nobody appended to since the instant and says how many.
	Sweep(ctx context.Context, before time.Time) (int, error)
}

// Records is what the service must not forget. Each method is one transaction, safe from many goroutines and
// processes at once.
type Records interface {
	RepositoryRecords
	FileRecords
	LinkRecords
	UploadRecords
}

// Config bounds the service.
type Config struct {
	NewID            func() string // makes unique ids
	UploadLife       time.Duration // an unfinished upload is dropped this long after the last byte; default 24 h
	UploadsPerCaller int           // unfinished uploads one caller may have; default 256
	SweepEvery       time.Duration // default 10 min
}

// Validate fills defaults and refuses what makes no sense, naming the field.
func (c *Config) Validate() error {
	if c.UploadLife == 0 {
		c.UploadLife = 24 * time.Hour
	}
	if c.UploadsPerCaller == 0 {
		c.UploadsPerCaller = 256
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = 10 * time.Minute
	}
	switch {
	case c.NewID == nil:
		return fault.Invalid("NewID", "must be set")
	case c.UploadLife < time.Minute:
		return fault.Invalid("UploadLife", "must be at least a minute")
	case c.UploadsPerCaller < 1:
		return fault.Invalid("UploadsPerCaller", "must be at least 1")
	case c.SweepEvery < time.Second:
		return fault.Invalid("SweepEvery", "must be at least a second")
	}
	return nil
}

// Service is the one door to repositories, files, links and uploads. Every method takes the caller and checks its
// role; what the caller may not see is fault not_found.
type Service struct {
	cfg     Config
	records Records
	blobs   Blobs
	access  Access
	clock   clock.Clock
}

// New makes the service over its stores.
func New(cfg Config, records Records, blobs Blobs, access Access, clk clock.Clock) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, records: records, blobs: blobs, access: access, clock: clk}, nil
}

// now is the wall time to store, in the store's resolution.
func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(p identity.Principal, action, target, detail string) audit.Entry {
	return audit.Entry{ID: s.cfg.NewID(), At: s.now(), Tenant: p.Tenant, Actor: p.ID, Action: action, Target: target, Detail: detail}
}
