package storetest

import (
	"fmt"
	"testing"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
)

// release is a version of a package as the catalog would store it; order stands for its precedence.
func release(w world, name, version, order, digest string) (catalog.Package, catalog.Version) {
	p := catalog.Package{
		ID: store.NewID(), Tenant: w.tenant.ID, Kind: catalog.Archive, Name: name, Revision: 1, CreatedAt: at(), CreatedBy: w.user.ID,
	}
	return p, catalog.Version{
		Package: p.ID, Name: name, Tenant: w.tenant.ID, Kind: p.Kind, Version: version, Precedence: order, Digest: "sha256:" + digest, Size: 7,
		Text: `{"name":"x"}`, State: catalog.Active, CreatedAt: at(), CreatedBy: w.user.ID,
	}
}

func publish(t *testing.T, s *store.Store, p catalog.Package, v catalog.Version) catalog.Version {
	t.Helper()
	stored, created, err := s.PublishVersion(t.Context(), p, v, entry())
	ok(t, err)
	equal(t, created, true)
	return stored
}

// packages: a version is published once and never changes; the name alone means the highest that may be resolved.
func packages(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	p, v := release(w, "report", "1.0.0", "b1", "aa")
	first := publish(t, a, p, v)
	equal(t, first, v)

	again, other := v, v
	again.Package, other.Digest = store.NewID(), "sha256:bb"
	stored, created, err := b.PublishVersion(ctx, p, again, entry())
	ok(t, err)
	equal(t, created, false)
	equal(t, stored, v)
	_, _, err = b.PublishVersion(ctx, p, other, entry())
	refused(t, err, fault.Conflict)
	image := p
	image.Kind = catalog.Image
	_, _, err = b.PublishVersion(ctx, image, v, entry())
	refused(t, err, fault.Conflict)

	_, higher := release(w, "report", "1.1.0", "b2", "cc")
	_, next := release(w, "report", "2.0.0-rc.1", "b3", "dd")
	next.Prerelease = true
	publish(t, b, p, higher)
	publish(t, a, p, next)
	for _, name := range []string{w.tenant.ID, "acme"} {
		got, err := b.PackageByName(ctx, name, "report")
		ok(t, err)
		want := p
		want.TenantName, want.Latest = "acme", "1.1.0"
		equal(t, got, want)
	}
	_, err = a.PackageByName(ctx, "acme", "nothing")
	refused(t, err, fault.NotFound)
	got, err := b.PackageVersion(ctx, p.ID, "1.0.0")
	ok(t, err)
	equal(t, got, v)
	_, err = b.PackageVersion(ctx, p.ID, "9.0.0")
	refused(t, err, fault.NotFound)

	page, err := a.ListVersions(ctx, p.ID, "", 2)
	ok(t, err)
	equal(t, len(page), 2)
	equal(t, page[0].Version+" "+page[1].Version+page[1].Text, "2.0.0-rc.1 1.1.0")
	page, err = a.ListVersions(ctx, p.ID, page[1].Precedence, 2)
	ok(t, err)
	equal(t, len(page), 1)
}

// packageStates: deprecated versions are the last resort of a name alone, yanked ones none; a state is changed by
// compare-and-set.
func packageStates(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	p, low := release(w, "report", "1.0.0", "b1", "aa")
	_, high := release(w, "report", "2.0.0", "b2", "bb")
	publish(t, a, p, low)
	high = publish(t, a, p, high)
	latest := func() string {
		got, err := b.PackageByName(ctx, w.tenant.ID, "report")
		ok(t, err)
		return got.Latest
	}
	equal(t, latest(), "2.0.0")
	high.State, high.Note = catalog.Deprecated, "use 1"
	ok(t, a.SetVersionState(ctx, high, catalog.Active, entry()))
	equal(t, latest(), "1.0.0")
	refused(t, b.SetVersionState(ctx, high, catalog.Active, entry()), fault.RevisionMismatch)
	low.Package, low.State = p.ID, catalog.Yanked
	ok(t, b.SetVersionState(ctx, low, catalog.Active, entry()))
	equal(t, latest(), "2.0.0")
	high.State = catalog.Yanked
	ok(t, b.SetVersionState(ctx, high, catalog.Deprecated, entry()))
	equal(t, latest(), "")
	gone := high
	gone.Version = "3.0.0"
	refused(t, a.SetVersionState(ctx, gone, catalog.Active, entry()), fault.NotFound)

	const rounds = 10
	for n := range rounds {
		from := low.State
		errs := together(a, b, func(i int, s *store.Store) error {
			change := low
			change.State, change.Note = []catalog.State{catalog.Active, catalog.Deprecated}[(n+i)%2], fmt.Sprint(i)
			if change.State == from {
				change.State = catalog.Yanked
			}
			return s.SetVersionState(ctx, change, from, entry())
		})
		winner := oneWins(t, errs, fault.RevisionMismatch)
		got, err := a.PackageVersion(ctx, p.ID, low.Version)
		ok(t, err)
		equal(t, got.Note, fmt.Sprint(winner))
		low = got
	}
}

// packageRights: another tenant finds a package, by name or by digest, only while it is public.
func packageRights(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	p, v := release(w, "report", "1.0.0", "b1", "aa")
	publish(t, a, p, v)
	_, err := b.VersionByDigest(ctx, other.tenant.ID, v.Digest)
	refused(t, err, fault.NotFound)
	got, err := b.VersionByDigest(ctx, w.tenant.ID, v.Digest)
	ok(t, err)
	v.Text = ""
	equal(t, got, v)
	page, err := b.ListPackages(ctx, catalog.Filter{}, "", "", 5)
	ok(t, err)
	equal(t, len(page), 0)

	shown := p
	shown.Public, shown.Revision = true, 2
	errs := together(a, b, func(_ int, s *store.Store) error { return s.ChangePackage(ctx, shown, 1, entry()) })
	oneWins(t, errs, fault.RevisionMismatch)
	_, err = b.VersionByDigest(ctx, other.tenant.ID, v.Digest)
	ok(t, err)
	page, err = b.ListPackages(ctx, catalog.Filter{Kind: catalog.Archive}, "", "", 5)
	ok(t, err)
	equal(t, len(page), 1)

	q, own := release(other, "report", "1.0.0", "b1", "aa")
	publish(t, b, q, own)
	got, err = a.VersionByDigest(ctx, other.tenant.ID, v.Digest)
	ok(t, err)
	equal(t, got.Package, q.ID)
	page, err = a.ListPackages(ctx, catalog.Filter{Tenant: other.tenant.ID}, "", "", 5)
	ok(t, err)
	equal(t, len(page), 1)
	equal(t, page[0].ID, q.ID)
	page, err = a.ListPackages(ctx, catalog.Filter{Tenant: other.tenant.ID, Kind: catalog.Image}, "", "", 5)
	ok(t, err)
	equal(t, len(page), 0)
	page, err = a.ListPackages(ctx, catalog.Filter{Tenant: other.tenant.ID}, "report", q.ID, 5)
	ok(t, err)
	equal(t, len(page), 0)
	gone := p
	gone.ID = "none"
	refused(t, a.ChangePackage(ctx, gone, 1, entry()), fault.NotFound)
}

// publishRace: of two publishes of one version one makes it. The other finds it there: the same digest is no error,
// another one is a conflict. One line is in the audit.
func publishRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	before, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	const rounds = 10
	for n := range rounds {
		name, same := fmt.Sprintf("p%d", n), n%2 == 0
		var created [2]bool
		errs := together(a, b, func(i int, s *store.Store) (err error) {
			digest := "aa"
			if i == 1 && !same {
				digest = "bb"
			}
			p, v := release(w, name, "1.0.0", "b1", digest)
			_, created[i], err = s.PublishVersion(ctx, p, v, entry())
			return err
		})
		if same {
			ok(t, errs[0])
			ok(t, errs[1])
		} else {
			oneWins(t, errs, fault.Conflict)
		}
		equal(t, created[0] != created[1], true)
		p, err := b.PackageByName(ctx, "acme", name)
		ok(t, err)
		page, err := a.ListVersions(ctx, p.ID, "", 5)
		ok(t, err)
		equal(t, len(page), 1)
	}
	after, err := b.ListAudit(ctx, "", 100)
	ok(t, err)
	equal(t, len(after)-len(before), rounds)
}

// packageInbox: the repository for a tenant's uploads is made once, and never another tenant's.
func packageInbox(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	inbox := func(s *store.Store, w world, account string) (string, error) {
		r := artifacts.Repository{ID: store.NewID(), Name: "packages-", Tenant: w.tenant.ID, Role: identity.Write, CreatedAt: at()}
		return s.PackageInbox(ctx, r, account, entry())
	}
	errs := together(a, b, func(_ int, s *store.Store) error {
		name, err := inbox(s, w, w.user.ID)
		if err == nil && name != "packages-acme" {
			err = fmt.Errorf("named %s", name)
		}
		return err
	})
	ok(t, errs[0])
	ok(t, errs[1])
	role, tenant, err := b.Role(ctx, w.user.ID, "packages-acme")
	ok(t, err)
	equal(t, role, identity.Write)
	equal(t, tenant, w.tenant.ID)
	role, _, err = b.Role(ctx, w.service.ID, "packages-acme")
	ok(t, err)
	equal(t, role, "")
	_, err = inbox(a, w, "")
	ok(t, err)
	_, err = inbox(a, world{}, "")
	refused(t, err, fault.NotFound)
	taken := artifacts.Repository{ID: store.NewID(), Name: "packages-other", Tenant: w.tenant.ID}
	ok(t, a.CreateRepository(ctx, taken, w.user.ID, entry()))
	_, err = inbox(b, other, other.user.ID)
	refused(t, err, fault.AlreadyExists)
}
