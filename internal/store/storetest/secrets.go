package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/secrets"
	"github.com/roadstead/roadstead/internal/store"
)

func secretOf(w world, name string, packages ...string) (secrets.Secret, secrets.Sealed) {
	s := secrets.Secret{
		ID: store.NewID(), Tenant: w.tenant.ID, Name: name, Packages: append([]string{}, packages...), Version: 1,
		CreatedAt: at(), CreatedBy: w.user.ID, RotatedAt: at(), RotatedBy: w.user.ID,
	}
	return s, sealedAs(s, "\x00sealed\xff")
}

func sealedAs(s secrets.Secret, text string) secrets.Sealed {
	return secrets.Sealed{Secret: s.ID, Tenant: s.Tenant, Name: s.Name, Version: s.Version, Key: "k1", Text: []byte(text)}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// secretRows: a secret is one tenant's; old values go with rotations, all of them with the secret.
func secretRows(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	s, v := secretOf(w, "db", "report", "x/tool")
	ok(t, a.CreateSecret(ctx, s, v, entry()))
	q, qv := secretOf(w, "api")
	ok(t, b.CreateSecret(ctx, q, qv, entry()))
	got, err := b.Secret(ctx, w.tenant.ID, "db")
	ok(t, err)
	same(t, got, s)
	_, err = b.Secret(ctx, other.tenant.ID, "db")
	refused(t, err, fault.NotFound)
	page, err := b.ListSecrets(ctx, w.tenant.ID, "", 5)
	ok(t, err)
	same(t, page, []secrets.Secret{q, s})
	page, err = b.ListSecrets(ctx, w.tenant.ID, "api", 5)
	ok(t, err)
	same(t, page, []secrets.Secret{s})
	known, values, err := b.SealedSecrets(ctx, w.tenant.ID, []string{"db", "none", "api", `"],[`})
	ok(t, err)
	same(t, known, []secrets.Secret{q, s})
	same(t, values, []secrets.Sealed{qv, v})
	known, _, err = b.SealedSecrets(ctx, other.tenant.ID, []string{"db"})
	ok(t, err)
	equal(t, len(known), 0)

	for n := int64(2); n <= 4; n++ {
		s.Version, s.RotatedBy = n, w.service.ID
		ok(t, b.RotateSecret(ctx, s, sealedAs(s, fmt.Sprint(n)), 2, entry()))
	}
	for n, there := range map[int64]bool{1: false, 2: false, 3: true, 4: true} {
		v, err := a.SealedVersion(ctx, s.ID, n)
		if !there {
			refused(t, err, fault.NotFound)
			continue
		}
		ok(t, err)
		equal(t, string(v.Text), fmt.Sprint(n))
	}
	_, values, err = a.SealedSecrets(ctx, w.tenant.ID, []string{"db"})
	ok(t, err)
	equal(t, string(values[0].Text), "4")
	s.Packages = []string{}
	ok(t, a.ScopeSecret(ctx, s, entry()))
	got, err = b.Secret(ctx, w.tenant.ID, "db")
	ok(t, err)
	same(t, got, s)

	under, err := a.SealedUnderOther(ctx, "k2", "", 0, 2)
	ok(t, err)
	equal(t, len(under), 2)
	rest, err := a.SealedUnderOther(ctx, "k2", under[1].Secret, under[1].Version, 5)
	ok(t, err)
	equal(t, len(rest), 1)
	anew := under[0]
	anew.Key, anew.Text = "k2", []byte("anew")
	done, err := a.Reseal(ctx, anew, "k1")
	ok(t, err)
	equal(t, done, true)
	done, err = b.Reseal(ctx, anew, "k1")
	ok(t, err)
	equal(t, done, false)
	under, err = b.SealedUnderOther(ctx, "k2", "", 0, 5)
	ok(t, err)
	equal(t, len(under), 2)

	ok(t, a.DeleteSecret(ctx, s, entry()))
	_, err = b.SealedVersion(ctx, s.ID, 4)
	refused(t, err, fault.NotFound)
	refused(t, b.DeleteSecret(ctx, s, entry()), fault.NotFound)
	refused(t, b.ScopeSecret(ctx, s, entry()), fault.NotFound)
	s.Version = 5
	refused(t, b.RotateSecret(ctx, s, sealedAs(s, "x"), 5, entry()), fault.NotFound)
	ok(t, b.NoteKeyRotation(ctx, entry()))
}

// secretRaces: of two makers of a name one makes it, of two rotations one makes the next version, and a deletion leaves
// no value of a rotation that ran beside it. Each change has one line in the audit.
func secretRaces(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	before, err := a.ListAudit(ctx, "", 1000)
	ok(t, err)
	lines := 0
	for n := range 5 {
		var made [2]secrets.Secret
		errs := together(a, b, func(i int, s *store.Store) error {
			var v secrets.Sealed
			made[i], v = secretOf(w, fmt.Sprintf("s%d", n))
			return s.CreateSecret(ctx, made[i], v, entry())
		})
		secret := made[oneWins(t, errs, fault.AlreadyExists)]
		lines++
		for range 3 {
			next := secret
			next.Version++
			errs := together(a, b, func(i int, s *store.Store) error {
				return s.RotateSecret(ctx, next, sealedAs(next, fmt.Sprint(i)), 5, entry())
			})
			winner := oneWins(t, errs, fault.RevisionMismatch)
			v, err := b.SealedVersion(ctx, secret.ID, next.Version)
			ok(t, err)
			equal(t, string(v.Text), fmt.Sprint(winner))
			secret = next
			lines++
		}
		next := secret
		next.Version++
		errs = together(a, b, func(i int, s *store.Store) error {
			if i == 0 {
				return s.DeleteSecret(ctx, secret, entry())
			}
			return s.RotateSecret(ctx, next, sealedAs(next, "late"), 5, entry())
		})
		ok(t, errs[0])
		lines++
		if errs[1] == nil {
			lines++
		} else {
			refused(t, errs[1], fault.NotFound)
		}
		_, err := a.SealedVersion(ctx, secret.ID, next.Version)
		refused(t, err, fault.NotFound)
		again, v := secretOf(w, secret.Name)
		ok(t, a.CreateSecret(ctx, again, v, entry()))
		lines++
	}
	left, err := b.SealedUnderOther(ctx, "", "", 0, 1000)
	ok(t, err)
	equal(t, len(left), 5)
	after, err := b.ListAudit(ctx, "", 1000)
	ok(t, err)
	equal(t, len(after)-len(before), lines)
}
