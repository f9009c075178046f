package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
)

func newRepository(t *testing.T, s *store.Store, w world, name string) artifacts.Repository {
	t.Helper()
	r := artifacts.Repository{ID: store.NewID(), Name: name, Tenant: w.tenant.ID, Role: identity.Admin, CreatedAt: at()}
	ok(t, s.CreateRepository(t.Context(), r, w.user.ID, entry()))
	return r
}

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func write(repository, path string, n int) artifacts.FileWrite {
	return artifacts.FileWrite{
		Repository: repository, Path: path, Digest: digest(n), Size: int64(n), MediaType: "text/plain", At: at(), By: "ann",
	}
}

func always(*artifacts.File) error { return nil }

func put(t *testing.T, s *store.Store, w artifacts.FileWrite) artifacts.File {
	t.Helper()
	f, _, err := s.PutFile(t.Context(), w, always)
	ok(t, err)
	return f
}

func grants(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	newRepository(t, a, w, "images")
	role, tenant, err := b.Role(ctx, w.user.ID, "images")
	ok(t, err)
	equal(t, role, identity.Admin)
	equal(t, tenant, w.tenant.ID)
	role, _, err = b.Role(ctx, w.service.ID, "images")
	ok(t, err)
	equal(t, role, "")
	_, _, err = b.Role(ctx, w.user.ID, "nothing")
	refused(t, err, fault.NotFound)

	g := identity.Grant{Repository: "images", Account: w.service.ID, Role: identity.Read}
	ok(t, b.SetGrant(ctx, g, entry()))
	g.Role = identity.Write
	ok(t, a.SetGrant(ctx, g, entry()))
	role, _, err = b.Role(ctx, w.service.ID, "images")
	ok(t, err)
	equal(t, role, identity.Write)
	// An account of another tenant can't be given anything.
	refused(t, a.SetGrant(ctx, identity.Grant{Repository: "images", Account: other.user.ID, Role: identity.Read}, entry()), fault.NotFound)
	refused(t, a.SetGrant(ctx, identity.Grant{Repository: "nothing", Account: w.user.ID, Role: identity.Read}, entry()), fault.NotFound)

	all, err := a.ListGrants(ctx, "images", "", 10)
	ok(t, err)
	equal(t, len(all), 2)
	next, err := a.ListGrants(ctx, "images", all[0].Account, 10)
	ok(t, err)
	equal(t, slices.Equal(next, all[1:]), true)
	ok(t, a.RemoveGrant(ctx, "images", w.service.ID, entry()))
	refused(t, b.RemoveGrant(ctx, "images", w.service.ID, entry()), fault.NotFound)
}

func repositories(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w, other := newWorld(t, a, "acme"), newWorld(t, a, "other")
	one, two := newRepository(t, a, w, "one"), newRepository(t, a, w, "two")
	newRepository(t, a, other, "three")
	same := two
	same.ID = store.NewID()
	refused(t, b.CreateRepository(ctx, same, w.user.ID, entry()), fault.AlreadyExists)

	got, err := b.Repository(ctx, "one", w.user.ID)
	ok(t, err)
	equal(t, got, one)
	_, err = b.Repository(ctx, "four", w.user.ID)
	refused(t, err, fault.NotFound)
	mine, err := b.ListRepositories(ctx, w.user.ID, false, "", 10)
	ok(t, err)
	equal(t, slices.Equal(mine, []artifacts.Repository{one, two}), true)
	all, err := b.ListRepositories(ctx, w.user.ID, true, "one", 10)
	ok(t, err)
	equal(t, len(all), 2)
	equal(t, all[0].Name, "three")

	put(t, a, write("one", "f", 1))
	refused(t, a.DeleteRepository(ctx, "one", entry()), fault.Conflict)
	_, err = a.DeleteFile(ctx, "one", "f", at(), "ann", always)
	ok(t, err)
	ok(t, a.DeleteRepository(ctx, "one", entry()))
	refused(t, b.DeleteRepository(ctx, "one", entry()), fault.NotFound)
}

func files(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	_, err := a.File(ctx, "r", "d/f")
	refused(t, err, fault.NotFound)
	_, _, err = a.PutFile(ctx, write("nothing", "d/f", 1), always)
	refused(t, err, fault.NotFound)

	f1, created, err := a.PutFile(ctx, write("r", "d/f", 1), always)
	ok(t, err)
	equal(t, created, true)
	equal(t, f1.Revision, 1)
	got, err := b.File(ctx, "r", "d/f")
	ok(t, err)
	equal(t, got, f1)

	f2, created, err := b.PutFile(ctx, write("r", "d/f", 2), func(current *artifacts.File) error {
		equal(t, *current, f1)
		return nil
	})
	ok(t, err)
	equal(t, created, false)
	equal(t, f2.Revision, 2)
	stop := fault.New(fault.PreconditionFails, "no")
	_, _, err = a.PutFile(ctx, write("r", "d/f", 3), func(*artifacts.File) error { return stop })
	refused(t, err, fault.PreconditionFails)

	gone, err := a.DeleteFile(ctx, "r", "d/f", at(), "ann", always)
	ok(t, err)
	equal(t, gone.Revision, 3)
	_, err = b.File(ctx, "r", "d/f")
	refused(t, err, fault.NotFound)
	_, err = b.DeleteFile(ctx, "r", "d/f", at(), "ann", always)
	refused(t, err, fault.NotFound)

	f4, created, err := a.PutFile(ctx, write("r", "d/f", 4), func(current *artifacts.File) error {
		if current != nil {
			return errors.New("a deletion was shown as a file")
		}
		return nil
	})
	ok(t, err)
	equal(t, created, true)
	equal(t, f4.Revision, 4)
	revisions, err := b.ListRevisions(ctx, "r", "d/f", 0, 10)
	ok(t, err)
	equal(t, slices.Equal(revisions, []artifacts.File{f4, gone, f2, f1}), true)
	revisions, err = b.ListRevisions(ctx, "r", "d/f", 3, 1)
	ok(t, err)
	equal(t, slices.Equal(revisions, []artifacts.File{f2}), true)
}

// listFiles: byte order on every engine, by prefix and page, without deletions.
func listFiles(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	paths := []string{"B", "a", "a b", "a-b", "a/1", "a/10", "a/2", "aB", "a_b", "ab", "b%c", "b_c", "z", "é", "я", "\ud7ffx", "\ue000", "🚢/x"}
	if !slices.IsSorted(paths) {
		t.Fatal("the list must be in byte order")
	}
	for i, p := range paths {
		put(t, a, write("r", p, i))
	}
	put(t, a, write("r", "a/3", 1))
	_, err := a.DeleteFile(ctx, "r", "a/3", at(), "ann", always)
	ok(t, err)
	walk := func(prefix string, limit int) (all []string) {
		after := ""
		for {
			page, err := b.ListFiles(ctx, "r", prefix, after, limit)
			ok(t, err)
			for _, f := range page {
				all = append(all, f.Path)
			}
			if len(page) < limit {
				return all
			}
			after = page[limit-1].Path
		}
	}
	for _, prefix := range []string{"", "a", "a/", "a/1", "b%", "b_", "é", "\ud7ff", "🚢", "zz", "\U0010fffe", "a\U0010ffff"} {
		var want []string
		for _, p := range paths {
			if strings.HasPrefix(p, prefix) {
				want = append(want, p)
			}
		}
		if got := walk(prefix, 3); !slices.Equal(got, want) {
			t.Errorf("prefix %q: got %q, want %q", prefix, got, want)
		}
	}
}

// meet makes both writers look at the same state before either writes. SQLite admits one writer at a time, so there
// they can't meet, and needn't.
func meet(s *store.Store) func() {
	if s.Engine() == "sqlite" {
		return func() {}
	}
	var both sync.WaitGroup
	both.Add(2)
	var once [2]sync.Once
	var mu sync.Mutex
	n := 0
	return func() {
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		if i < 2 {
			once[i].Do(both.Done)
			both.Wait()
		}
	}
}

// putRace: writers without conditions all succeed, each with a revision of its own.
func putRace(t *testing.T, a, b *store.Store) {
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	const rounds = 8
	seen := map[int64]bool{}
	for n := range rounds {
		var got [2]artifacts.File
		barrier := meet(a)
		errs := together(a, b, func(i int, s *store.Store) (err error) {
			got[i], _, err = s.PutFile(t.Context(), write("r", "f", 2*n+i), func(*artifacts.File) error {
				barrier()
				return nil
			})
			return err
		})
		ok(t, errors.Join(errs[:]...))
		seen[got[0].Revision], seen[got[1].Revision] = true, true
	}
	equal(t, len(seen), 2*rounds)
	revisions, err := b.ListRevisions(t.Context(), "r", "f", 0, 100)
	ok(t, err)
	equal(t, len(revisions), 2*rounds)
	equal(t, revisions[0].Revision, 2*rounds)
}

// conditionRace: of two writers that both require the same current revision, one wins.
func conditionRace(t *testing.T, a, b *store.Store) {
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	for n := range int64(8) {
		barrier := meet(a)
		errs := together(a, b, func(i int, s *store.Store) error {
			_, _, err := s.PutFile(t.Context(), write("r", "f", i), func(current *artifacts.File) error {
				barrier()
				if have := revision(current); have != n {
					return fault.New(fault.PreconditionFails, "at %d", have)
				}
				return nil
			})
			return err
		})
		oneWins(t, errs, fault.PreconditionFails)
	}
}

func revision(f *artifacts.File) int64 {
	if f == nil {
		return 0
	}
	return f.Revision
}

// deleteRepositoryRace: a repository is not deleted under a file that was just acknowledged.
func deleteRepositoryRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	for n := range 8 {
		name := fmt.Sprintf("r%d", n)
		newRepository(t, a, w, name)
		errs := together(a, b, func(i int, s *store.Store) error {
			if i == 0 {
				return s.DeleteRepository(ctx, name, entry())
			}
			_, _, err := s.PutFile(ctx, write(name, "f", 1), always)
			return err
		})
		_, err := a.File(ctx, name, "f")
		switch {
		case errs[1] == nil: // the file was acknowledged: it must be there
			ok(t, err)
			refused(t, errs[0], fault.Conflict)
		default:
			ok(t, errs[0])
			refused(t, errs[1], fault.NotFound)
			refused(t, err, fault.NotFound)
		}
	}
}

func digests(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	newRepository(t, a, w, "r")
	newRepository(t, a, w, "s")
	old := put(t, a, write("r", "f", 1))
	put(t, a, write("r", "f", 2))
	got, err := b.FileByDigest(ctx, "r", digest(1))
	ok(t, err)
	equal(t, got, old)
	_, err = b.FileByDigest(ctx, "s", digest(1)) // in another repository it is not there
	refused(t, err, fault.NotFound)
	_, err = a.DeleteFile(ctx, "r", "f", at(), "ann", always)
	ok(t, err)
	_, err = b.FileByDigest(ctx, "r", digest(1))
	refused(t, err, fault.NotFound)
}

func links(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	w := newWorld(t, a, "acme")
	newRepository(t, a, w, "r")
	newRepository(t, a, w, "s")
	f := put(t, a, write("r", "f", 1))
	put(t, a, write("r", "f", 2))
	l := artifacts.ShareLink{
		ID: store.NewID(), Hash: "h1", Repository: "r", Path: "f", Revision: 1, CreatedAt: at(), CreatedBy: w.user.ID, ExpiresAt: at().Add(time.Hour),
	}
	ok(t, a.CreateLink(ctx, l, entry()))
	got, tenant, file, err := b.LinkByHash(ctx, "h1")
	ok(t, err)
	equal(t, got, l)
	equal(t, tenant, w.tenant.ID)
	equal(t, file, f) // the revision it was made for, not the current one
	_, _, _, err = b.LinkByHash(ctx, "h2")
	refused(t, err, fault.NotFound)

	refused(t, b.RevokeLink(ctx, "s", l.ID, at(), entry()), fault.NotFound)
	before, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	errs := together(a, b, func(_ int, s *store.Store) error { return s.RevokeLink(ctx, "r", l.ID, at(), entry()) })
	ok(t, errors.Join(errs[:]...))
	after, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	equal(t, len(after)-len(before), 1)
	l.RevokedAt = at()
	page, err := b.ListLinks(ctx, "r", "", 10)
	ok(t, err)
	equal(t, slices.Equal(page, []artifacts.ShareLink{l}), true)
	page, err = b.ListLinks(ctx, "r", l.ID, 10)
	ok(t, err)
	equal(t, len(page), 0)

	_, err = a.DeleteFile(ctx, "r", "f", at(), "ann", always)
	ok(t, err)
	_, _, _, err = b.LinkByHash(ctx, "h1")
	refused(t, err, fault.NotFound)
}

func newUpload(id string) artifacts.Upload {
	return artifacts.Upload{
		ID: id, Repository: "r", Path: "f", MediaType: "text/plain", Size: 5, Digest: digest(1), IfMatch: `"a"`, IfNoneMatch: "*",
		CreatedAt: at(), CreatedBy: "ann", ExpiresAt: at().Add(time.Hour),
	}
}

func uploads(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	u := newUpload("u1")
	ok(t, a.CreateUpload(ctx, u, 2))
	got, err := b.Upload(ctx, "u1")
	ok(t, err)
	equal(t, got, u)
	ok(t, a.CreateUpload(ctx, newUpload("u2"), 2))
	err = a.CreateUpload(ctx, newUpload("u3"), 2)
	refused(t, err, fault.RateLimited)
	if fault.From(err).RetryAfter == 0 {
		t.Error("rate_limited without RetryAfter")
	}

	ok(t, b.ExtendUpload(ctx, "u1", at().Add(2*time.Hour)))
	expired, err := a.ExpiredUploads(ctx, at().Add(90*time.Minute), 10)
	ok(t, err)
	equal(t, slices.Equal(expired, []string{"u2"}), true)
	ok(t, a.DeleteUpload(ctx, "u2"))
	ok(t, b.DeleteUpload(ctx, "u2"))
	refused(t, b.ExtendUpload(ctx, "u2", at()), fault.NotFound)
	_, err = b.Upload(ctx, "u2")
	refused(t, err, fault.NotFound)
}

// finishRace: an upload becomes one revision, whoever asks for it how often.
func finishRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	newRepository(t, a, newWorld(t, a, "acme"), "r")
	for n := range int64(6) {
		id := fmt.Sprintf("u%d", n)
		ok(t, a.CreateUpload(ctx, newUpload(id), 100))
		barrier := meet(a)
		errs := together(a, b, func(_ int, s *store.Store) error {
			_, _, err := s.FinishUpload(ctx, id, write("r", "f", 1), func(*artifacts.File) error {
				barrier()
				return nil
			})
			return err
		})
		oneWins(t, errs, fault.Conflict)
		u, err := a.Upload(ctx, id)
		ok(t, err)
		equal(t, u.Revision, n+1)
		f, err := b.File(ctx, "r", "f")
		ok(t, err)
		equal(t, f.Revision, n+1)
	}
}
