package pools

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// The secrets of runners say what they are, so that whoever finds one knows.
const (
	tokenPrefix = "rst_"
	keyPrefix   = "rsr_"
)

// NewToken lets one runner register itself with the pool, once.
func (s *Service) NewToken(ctx context.Context, p identity.Principal, pool string) (api.RunnerToken, error) {
	if _, err := s.changeable(ctx, p, pool); err != nil {
		return api.RunnerToken{}, err
	}
	secret := tokenPrefix + random()
	t := Token{ID: "rtk_" + s.cfg.NewID(), Pool: pool, Hash: hash(secret), ExpiresAt: s.now().Add(s.cfg.TokenLife)}
	err := s.store.CreateToken(ctx, t, s.entry(p, p.Tenant, "runner_token.created", pool, "token "+t.ID))
	return api.RunnerToken{ID: t.ID, Pool: pool, Token: secret, ExpiresAt: t.ExpiresAt}, err
}

// Register makes a runner of whoever has a token, and gives it a key of its own.
func (s *Service) Register(ctx context.Context, in api.RegisterRunner) (api.RegisteredRunner, error) {
	if err := attempts.CheckProtocol(in.Protocol); err != nil {
		return api.RegisteredRunner{}, err
	}
	if err := checkRunner(in); err != nil {
		return api.RegisteredRunner{}, err
	}
	id := "rnr_" + s.cfg.NewID()
	key := keyPrefix + strings.TrimPrefix(id, "rnr_") + "_" + random()
	r, err := s.store.RegisterRunner(ctx, hash(in.Token), Runner{
		ID: id, Name: in.Name, Hash: hash(key), Capacity: in.Capacity, Labels: in.Labels, Version: in.Version, Protocol: in.Protocol, CreatedAt: s.now(),
	}, s.now(), s.entry(identity.Principal{ID: id}, "", "runner.registered", id, in.Name))
	return api.RegisteredRunner{
		Runner: r.ID, Key: key, Pool: r.Pool, Protocol: api.RunnerProtocol,
		LeaseSeconds: int64(s.cfg.Lease / time.Second), HeartbeatSeconds: int64(s.cfg.Heartbeat / time.Second),
	}, err
}

const (
	maxLabels = 64
	maxLabel  = 200 // bytes of a label's value, of a name and of a version
)

var labelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$`)

// checkRunner refuses what a runner may not say of itself, naming the field.
func checkRunner(in api.RegisterRunner) error {
	switch {
	case in.Name == "" || len(in.Name) > maxLabel || strings.ContainsFunc(in.Name, unicode.IsControl):
		return fault.Invalid("name", "must have 1 to %d bytes and no control characters", maxLabel)
	case len(in.Version) > maxLabel || strings.ContainsFunc(in.Version, unicode.IsControl):
		return fault.Invalid("version", "must have at most %d bytes and no control characters", maxLabel)
	case len(in.Labels) > maxLabels:
		return fault.Invalid("labels", "at most %d are allowed", maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Labels)) {
		if value := in.Labels[name]; !labelName.MatchString(name) || len(value) > maxLabel || strings.ContainsRune(value, 0) {
			return fault.Invalid("labels."+name, "the name must be lower case letters, digits and . _ / - (63 at most), the value at most %d bytes", maxLabel)
		}
	}
	return checkCapacity(in.Capacity)
}

func checkCapacity(c api.Resources) error {
	for _, f := range []struct {
		field      string
		value, max int64
	}{{"slots", c.Slots, 1_000_000}, {"milliCpu", c.MilliCPU, 10_000_000}, {"memoryBytes", c.MemoryBytes, 1 << 50}, {"diskBytes", c.DiskBytes, 1 << 60}} {
		if f.value < 1 || f.value > f.max {
			return fault.Invalid("capacity."+f.field, "must be from 1 to %d, not %d", f.max, f.value)
		}
	}
	return nil
}

// AuthenticateRunner turns a runner's key into who it is. A key that is revoked is unknown from that moment on.
func (s *Service) AuthenticateRunner(ctx context.Context, key string) (attempts.Caller, error) {
	refused := fault.New(fault.Unauthorized, "sign in with a runner's own key: this one is unknown or revoked")
	rest, found := strings.CutPrefix(key, keyPrefix)
	id, _, _ := strings.Cut(rest, "_")
	if !found {
		return attempts.Caller{}, refused
	}
	r, err := s.store.Runner(ctx, "rnr_"+id)
	if fault.Is(err, fault.NotFound) {
		return attempts.Caller{}, refused
	}
	if err != nil {
		return attempts.Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(hash(key)), []byte(r.Hash)) != 1 || !r.RevokedAt.IsZero() {
		return attempts.Caller{}, refused
	}
	pool, err := s.store.Pool(ctx, r.Pool)
	return attempts.Caller{Runner: r.ID, Pool: r.Pool, Draining: r.Draining || pool.Draining, DrainBy: pool.DrainBy}, err
}

func random() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: it ends the program when the system has no randomness
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
