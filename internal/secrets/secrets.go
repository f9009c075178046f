// Package secrets keeps what Runs must know and nobody else may: values that go in and never come out of the API, sealed
// at rest under a key outside the database, handed to an Attempt at its start, and masked in what it prints.
package secrets

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Secret is a secret without its value.
type Secret struct {
	ID        string
	Tenant    string   // id
	Name      string   // unique in the tenant; the name of the file that holds it in an Attempt
	Packages  []string // the only packages that get it: NAME of the own tenant or TENANT/NAME; empty: every Run of the tenant
	Version   int64    // 1 for the first value; rises by one with each rotation
	CreatedAt time.Time
	CreatedBy string // account id
	RotatedAt time.Time
	RotatedBy string
}

// Sealed is one version of a secret's value as it is stored.
type Sealed struct {
	Secret  string // id
	Tenant  string
	Name    string
	Version int64
	Key     string // id of the key it is sealed under
	Text    []byte // nonce and ciphertext
}

// Records is what the service must not forget. Each method is one transaction, safe from many goroutines and processes
// at once. A secret that is not there is fault not_found.
type Records interface {
	SecretRecords
	SealedRecords
}

// SecretRecords keeps secrets.
type SecretRecords interface {
	// CreateSecret stores a secret with its first value; already_exists if the tenant has the name.
	CreateSecret(ctx context.Context, s Secret, v Sealed, e audit.Entry) error
	Secret(ctx context.Context, tenant, name string) (Secret, error)
	// ListSecrets lists a tenant's by name past after.
	ListSecrets(ctx context.Context, tenant, after string, limit int) ([]Secret, error)
	// RotateSecret adds v, the version after the stored one, and forgets all but the newest keep versions. If the stored
	// version is not v's less one, the fault is revision_mismatch.
	RotateSecret(ctx context.Context, s Secret, v Sealed, keep int64, e audit.Entry) error
	// ScopeSecret replaces the packages if the secret, by its id, still is there.
	ScopeSecret(ctx context.Context, s Secret, e audit.Entry) error
	// DeleteSecret forgets the secret, by its id, and every value it had.
	DeleteSecret(ctx context.Context, s Secret, e audit.Entry) error
}

// SealedRecords keeps values.
type SealedRecords interface {
	// SealedSecrets finds the named secrets of a tenant with their newest values; those that are not there are left out.
	SealedSecrets(ctx context.Context, tenant string, names []string) ([]Secret, []Sealed, error)
	// SealedVersion finds one version of a secret, by its id.
	SealedVersion(ctx context.Context, secret string, version int64) (Sealed, error)
	// NoteGiven writes the audit of a hand-over.
	NoteGiven(ctx context.Context, entries []audit.Entry) error
	// SealedUnderOther lists values under any key but this one, by secret and version past both.
	SealedUnderOther(ctx context.Context, key, afterSecret string, afterVersion int64, limit int) ([]Sealed, error)
	// Reseal replaces the text of a value, still under the key from, and says whether it was.
	Reseal(ctx context.Context, v Sealed, from string) (done bool, err error)
	// NoteKeyRotation writes that the key was rotated.
	NoteKeyRotation(ctx context.Context, e audit.Entry) error
}

// Bounds of secrets.
const (
	MinValue    = 6        // bytes that are no spaces; a shorter value would be found in every other line of a log
	MaxValue    = 32 << 10 // bytes
	MaxPackages = 50
	MaxAtOnce   = 100 // secrets of one Attempt
	keepValues  = 5   // versions of a value that stay readable for Attempts that began with them
)

// Config is what the service needs to know.
type Config struct {
	NewID func() string // makes unique ids
}

// Service is the one door to secrets. Admins of a tenant change them, its members see that they are there; what the
// caller may not see is fault not_found.
type Service struct {
	newID   func() string
	records Records
	keys    *Keyring
	clock   clock.Clock
}

// New makes the service over its store and the keys.
func New(cfg Config, records Records, keys *Keyring, clk clock.Clock) (*Service, error) {
	if cfg.NewID == nil {
		return nil, fault.Invalid("NewID", "must be set")
	}
	return &Service{newID: cfg.NewID, records: records, keys: keys, clock: clk}, nil
}

// now is the wall time to store, in the store's resolution.
func (s *Service) now() time.Time { return s.clock.Wall().UTC().Truncate(time.Millisecond) }

func (s *Service) entry(actor, tenant, action, target, detail string) audit.Entry {
	return audit.Entry{ID: s.newID(), At: s.now(), Tenant: tenant, Actor: actor, Action: action, Target: target, Detail: detail}
}

// tenantOf is the tenant a caller asks about: its own unless an operator names another one.
func tenantOf(p identity.Principal, asked string) (string, error) {
	if asked == "" {
		asked = p.Tenant
	}
	if !p.Belongs(asked) {
		return "", fault.Missing("tenant")
	}
	return asked, nil
}

// adminOf is the same for those who may change secrets.
func adminOf(p identity.Principal, asked string) (string, error) {
	tenant, err := tenantOf(p, asked)
	if err != nil {
		return "", err
	}
	if !p.Administers(tenant) {
		return "", fault.New(fault.Forbidden, "only an admin of the tenant or an operator may change its secrets")
	}
	return tenant, nil
}
