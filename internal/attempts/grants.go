package attempts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runs"
)

// GrantUpload lets an Attempt upload one object of that size and digest. It doesn't outlive the Attempt.
func (s *Service) GrantUpload(ctx context.Context, c Caller, attempt string, in api.NewGrant) (api.UploadGrant, error) {
	h := Holder{c.Runner, attempt, in.Fence}
	a, spec, err := s.ports.Records.LiveAttempt(ctx, h)
	if err != nil {
		return api.UploadGrant{}, err
	}
	if err := s.checkGrant(in, spec); err != nil {
		return api.UploadGrant{}, err
	}
	secret, hash := newSecret()
	g, err := s.ports.Records.NewGrant(ctx, h, Grant{
		ID: "grt_" + s.cfg.NewID(), Attempt: attempt, Run: a.Run, Tenant: a.Tenant, Kind: in.Kind, Name: in.Name, Digest: in.Digest, Size: in.Size,
		Hash: hash, ExpiresAt: s.now().Add(s.cfg.GrantLife),
	})
	return api.UploadGrant{Grant: secret, Path: "/api/v1/runner/uploads", ExpiresAt: g.ExpiresAt, Done: !g.DoneAt.IsZero()}, err
}

var checkpointName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

func (s *Service) checkGrant(in api.NewGrant, spec runs.Spec) error {
	switch {
	case in.Size < 0 || in.Size > s.cfg.MaxResult:
		return fault.Invalid("size", "must be from 0 to %d", s.cfg.MaxResult)
	case in.Kind == "checkpoint" && checkpointName.MatchString(in.Name):
		return nil
	case in.Kind == "checkpoint":
		return fault.Invalid("name", "a checkpoint's must be 1 to 100 letters, digits and . _ -")
	case in.Kind != "result":
		return fault.Invalid("kind", "must be result or checkpoint")
	case !slices.ContainsFunc(spec.Outputs, func(o api.Output) bool { return o.Name == in.Name }):
		return fault.Invalid("name", "the Run has no output %q", in.Name)
	}
	return nil
}

// Upload takes the bytes of a grant. They are there whole, on the disk, or not at all.
func (s *Service) Upload(ctx context.Context, secret string, length int64, body io.Reader) error {
	began := s.now() // a grant that is good now may grow old while the bytes come
	g, err := s.ports.Records.UseGrant(ctx, hashOf(secret), began)
	if err != nil || !g.DoneAt.IsZero() {
		return err
	}
	if length >= 0 && length != g.Size {
		return fault.New(fault.IntegrityMismatch, "the grant is for %d bytes, the request has %d", g.Size, length)
	}
	if err := s.ports.Objects.Put(ctx, g.Digest, g.Size, body); err != nil {
		return err
	}
	return s.ports.Records.FinishGrant(ctx, g.ID, began)
}

const grantPrefix = "rsg_"

func newSecret() (secret, hash string) {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic(fmt.Sprintf("the system's randomness failed: %v", err)) // crypto/rand never returns an error on supported systems
	}
	secret = grantPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, hashOf(secret)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
