package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

const rewrapBatch = 100

// Rewrapped is what a Rewrap did.
type Rewrapped struct {
	Key      string // the key that everything is under now
	Count    int    // values that were sealed anew
	Unopened int    // values that do not open, left as they are
}

// RotateKey makes a new key and seals every value anew under it. Operators only. The keys before stay in the file: older
// backups of the database need them. Interrupted, it is finished by Rewrap.
func (s *Service) RotateKey(ctx context.Context, p identity.Principal) (Rewrapped, error) {
	if !p.Operator {
		return Rewrapped{}, fault.New(fault.Forbidden, "only a system operator may rotate the key of the secrets")
	}
	id, err := s.keys.add()
	if err != nil {
		return Rewrapped{}, err
	}
	if err := s.records.NoteKeyRotation(ctx, s.entry(p.ID, p.Tenant, "secrets_key.rotated", id, "")); err != nil {
		return Rewrapped{}, err
	}
	return s.Rewrap(ctx, p)
}

// Rewrap seals every value anew that is not under the current key. It may run beside rotations, in several processes, and
// again after it was interrupted. A value that does not open is counted and left. Operators only.
func (s *Service) Rewrap(ctx context.Context, p identity.Principal) (done Rewrapped, err error) {
	if !p.Operator {
		return done, fault.New(fault.Forbidden, "only a system operator may seal the secrets anew")
	}
	id, key := s.keys.current()
	done.Key = id
	secret, version := "", int64(0)
	for {
		batch, err := s.records.SealedUnderOther(ctx, id, secret, version, rewrapBatch)
		if err != nil {
			return done, err
		}
		for _, v := range batch {
			secret, version = v.Secret, v.Version
			value, err := s.open(v)
			if err != nil {
				done.Unopened++
				continue
			}
			from := v.Key
			v.Key = id
			if v.Text, err = sealUnder(key, v, value); err != nil {
				return done, err
			}
			replaced, err := s.records.Reseal(ctx, v, from)
			if err != nil {
				return done, fmt.Errorf("sealing secrets anew: %w", err)
			}
			if replaced {
				done.Count++
			}
		}
		if len(batch) < rewrapBatch {
			return done, nil
		}
	}
}

// CheckKeys says whether the keys are there that stored values are under, at the start of a server: a database that came
// without its key file is found then, not by the first Run.
func (s *Service) CheckKeys(ctx context.Context) error {
	id, _ := s.keys.current()
	batch, err := s.records.SealedUnderOther(ctx, id, "", 0, rewrapBatch)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	var all []error
	for _, v := range batch {
		if _, err := s.keys.find(v.Key); err != nil && !missing[v.Key] {
			missing[v.Key] = true
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
