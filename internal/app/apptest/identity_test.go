package apptest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

func TestKeysEnd(t *testing.T) {
	s := apptest.Start(t)
	id, key := s.ServiceAccount("ci", "", "")
	var who api.Whoami
	if a := s.JSON(key, "GET", "/api/v1/whoami", nil, &who); a.Status != 200 || who.ID != id || who.Kind != "service" || who.Class != "release" || who.Operator {
		t.Fatalf("whoami: %d %s", a.Status, a.Body)
	}
	var keys api.Page[api.Key]
	s.JSON(s.Key, "GET", "/api/v1/keys?account="+id, nil, &keys)
	if len(keys.Items) != 1 || keys.Items[0].Secret != "" {
		t.Fatalf("keys: %+v", keys.Items)
	}
	if a := s.JSON(key, "POST", "/api/v1/keys", api.NewKey{Name: "own"}, nil); a.Status != 403 {
		t.Errorf("a service account made a key: %d", a.Status)
	}
	s.Repository("demo")
	s.Put("demo", "a", nil)
	for _, past := range []time.Time{time.Now().Add(-time.Hour), {}} { // a zero time that is sent does not mean never
		key := s.JSON(s.Key, "POST", "/api/v1/keys", api.NewKey{Name: "old", ExpiresAt: &past}, nil)
		link := s.JSON(s.Key, "POST", "/api/v1/repositories/demo/links", api.NewLink{Path: "a", ExpiresAt: &past}, nil)
		for _, a := range []apptest.Answer{key, link} {
			if a.Status != 400 || s.Problem(a).Details[0].Field != "expiresAt" {
				t.Errorf("ended at %v, before it began: %d %s", past, a.Status, a.Body)
			}
		}
	}
	if a := s.JSON(s.Key, "DELETE", "/api/v1/keys/"+keys.Items[0].ID, nil, nil); a.Status != 204 {
		t.Errorf("revoke: %d %s", a.Status, a.Body)
	}
	if a := s.JSON(key, "GET", "/api/v1/whoami", nil, nil); a.Status != 401 || len(a.Header.Values("WWW-Authenticate")) == 0 {
		t.Errorf("a revoked key: %d", a.Status)
	}
}

// The class of a service account is policy with a revision: of two changes from one revision, one loses (D-4.3).
func TestPolicyHasARevision(t *testing.T) {
	s := apptest.Start(t)
	id, key := s.ServiceAccount("mirror", "", "")
	bulk, interactive, unknown := "bulk", "interactive", "urgent"
	path := "/api/v1/service-accounts/" + id
	cases := []struct {
		name   string
		change api.AccountChange
		status int
		code   string
	}{
		{"lower", api.AccountChange{ExpectedRevision: 1, Class: &bulk}, 200, ""},
		{"from the old revision", api.AccountChange{ExpectedRevision: 1, Class: &bulk}, 409, "revision_mismatch"},
		{"above its kind", api.AccountChange{ExpectedRevision: 2, Class: &interactive}, 400, "invalid_input"},
		{"unknown class", api.AccountChange{ExpectedRevision: 2, Class: &unknown}, 400, "invalid_input"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.JSON(s.Key, "PATCH", path, c.change, nil)
			if a.Status != c.status || c.code != "" && s.Problem(a).Code != c.code {
				t.Errorf("got %d %s", a.Status, a.Body)
			}
		})
	}
	if a := s.JSON(key, "PATCH", path, api.AccountChange{ExpectedRevision: 2, Class: &bulk}, nil); a.Status != 403 {
		t.Errorf("it changed its own policy: %d", a.Status)
	}
	if a := s.JSON(s.Key, "PATCH", "/api/v1/users/"+id, api.AccountChange{ExpectedRevision: 2}, nil); a.Status != 404 {
		t.Errorf("a service account among the users: %d", a.Status)
	}
	var who api.Whoami
	if s.JSON(key, "GET", "/api/v1/whoami", nil, &who); who.Class != "bulk" {
		t.Errorf("class %s", who.Class)
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("ours")
	var other api.Tenant
	s.JSON(s.Key, "POST", "/api/v1/tenants", api.NewTenant{Name: "other"}, &other)
	var user api.Account
	s.JSON(s.Key, "POST", "/api/v1/users", api.NewAccount{Tenant: other.ID, Name: "eve"}, &user)
	var key api.Key
	s.JSON(s.Key, "POST", "/api/v1/keys", api.NewKey{Account: user.ID, Name: "k"}, &key)
	if a := s.JSON(s.Key, "PUT", "/api/v1/repositories/ours/grants/"+user.ID, api.GrantRole{Role: "read"}, nil); a.Status < 400 {
		t.Errorf("a grant across tenants: %d", a.Status)
	}
	var repositories api.Page[api.Repository]
	s.JSON(key.Secret, "GET", "/api/v1/repositories", nil, &repositories)
	var tenants api.Page[api.Tenant]
	s.JSON(key.Secret, "GET", "/api/v1/tenants", nil, &tenants)
	if len(repositories.Items) != 0 || len(tenants.Items) != 1 || tenants.Items[0].ID != other.ID {
		t.Errorf("eve sees %+v %+v", repositories.Items, tenants.Items)
	}
	for _, path := range []string{"/api/v1/users?tenant=" + tenants.Items[0].ID + "x", "/api/v1/repositories/ours/grants", "/api/v1/repositories/ours/links"} {
		if a := s.JSON(key.Secret, "GET", path, nil, nil); a.Status != 404 {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
}

func TestPagesAreWhole(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	for i := range 7 {
		s.Put("demo", fmt.Sprintf("d/%d", i), []byte("x"))
	}
	s.Put("demo", "e", []byte("x"))
	var seen []string
	for after, pages := "", 0; ; pages++ {
		var page api.Page[api.File]
		a := s.JSON(s.Key, "GET", "/api/v1/repositories/demo/files?prefix=d/&limit=3&after="+after, nil, &page)
		if a.Status != 200 || pages > 3 {
			t.Fatalf("page %d: %d %s", pages, a.Status, a.Body)
		}
		for _, f := range page.Items {
			seen = append(seen, f.Path)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if fmt.Sprint(seen) != "[d/0 d/1 d/2 d/3 d/4 d/5 d/6]" {
		t.Errorf("saw %v", seen)
	}
}
