package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

func serveJSON(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(Config{URL: server.URL, Key: "rsk_k", Retry: Retry{MinDelay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Each call says the right thing to the right address.
func TestCallsOnTheWire(t *testing.T) {
	var got string
	c := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.RequestURI() + " " + string(body)
		if r.Header.Get("Authorization") != "Bearer rsk_k" {
			t.Errorf("no key with %s", got)
		}
		_, _ = io.WriteString(w, "{}")
	})
	ctx := t.Context()
	tests := []struct {
		want string
		call func() error
	}{
		{"GET /api/v1/whoami ", func() error { _, err := c.Whoami(ctx); return err }},
		{"GET /api/v1/system/downloads/queue ", func() error { _, err := c.Queue(ctx); return err }},
		{`POST /api/v1/repositories {"name":"r"}`, func() error { _, err := c.CreateRepository(ctx, "r"); return err }},
		{`PUT /api/v1/repositories/r/grants/acc%2F1 {"role":"read"}`, func() error { return c.Grant(ctx, "r", "acc/1", "read") }},
		{"DELETE /api/v1/repositories/r/grants/a ", func() error { return c.RevokeGrant(ctx, "r", "a") }},
		{"DELETE /files/r/a%20b/c ", func() error { return c.DeleteFile(ctx, "r", "a b/c") }},
		{`POST /api/v1/repositories/r/links {"path":"p"}`, func() error { _, err := c.CreateLink(ctx, "r", "p", 0); return err }},
		{"DELETE /api/v1/repositories/r/links/7 ", func() error { return c.RevokeLink(ctx, "r", "7") }},
		{"DELETE /api/v1/repositories/r ", func() error { return c.DeleteRepository(ctx, "r") }},
		{`POST /api/v1/keys {"account":"a","name":"ci"}`, func() error { _, err := c.CreateKey(ctx, "a", "ci", 0); return err }},
		{"DELETE /api/v1/keys/k ", func() error { return c.RevokeKey(ctx, "k") }},
		{`POST /api/v1/downloads {"repository":"r","path":"p","class":"bulk"}`, func() error {
			_, err := c.Book(ctx, NewKey(), api.NewBooking{Repository: "r", Path: "p", Class: "bulk"})
			return err
		}},
		{"GET /api/v1/downloads/d ", func() error { _, err := c.Booking(ctx, "d", ""); return err }},
		{"DELETE /api/v1/downloads/d ", func() error { return c.CancelBooking(ctx, "d") }},
		{`POST /api/v1/tenants {"name":"t"}`, func() error { _, err := c.CreateTenant(ctx, "t"); return err }},
		{`POST /api/v1/users {"name":"u","operator":true}`, func() error { _, err := c.CreateUser(ctx, api.NewAccount{Name: "u", Operator: true}); return err }},
		{`POST /api/v1/service-accounts {"name":"s","class":"bulk"}`, func() error {
			_, err := c.CreateServiceAccount(ctx, api.NewAccount{Name: "s", Class: "bulk"})
			return err
		}},
		{`PATCH /api/v1/service-accounts/s {"expectedRevision":3,"class":"bulk"}`, func() error { _, err := c.SetClass(ctx, "s", "bulk", 3); return err }},
	}
	for _, tt := range tests {
		if err := tt.call(); err != nil || got != tt.want {
			t.Errorf("%v: sent %q, want %q", err, got, tt.want)
		}
	}
}

func TestListingsWalkPages(t *testing.T) {
	c := serveJSON(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		page := api.Page[api.File]{Items: []api.File{{Path: q.Get("after") + "x"}}, Next: q.Get("after") + "x"}
		if q.Get("prefix") != "p" || len(page.Next) == 4 {
			page.Next = ""
		}
		_ = json.NewEncoder(w).Encode(page)
	})
	var got []string
	for f, err := range c.Files(t.Context(), "r", "p") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Path)
	}
	if fmt.Sprint(got) != "[x xx xxx xxxx]" {
		t.Error(got)
	}
	for range c.Files(t.Context(), "r", "p") {
		break
	}
}

func TestCallErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		detail := []api.Detail{{Field: "name", Problem: "must be short"}}
		f := &fake{script: []step{problem(400, api.Problem{Code: "invalid_input", Message: "bad name", Details: detail, RequestID: "q1"})}}
		c := newClient(t, f, Retry{})
		_, err := c.Whoami(t.Context())
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != 400 || e.Code != "invalid_input" || e.RequestID != "q1" || err.Error() != "bad name [name: must be short]" {
			t.Errorf("%#v", err)
		}
		f.script = append(repeat(3, problem(503, api.Problem{Code: "busy", RetryAfterSeconds: 7})), repeat(9, refused)...)
		begin := time.Now()
		if _, err = c.Whoami(t.Context()); !errors.Is(err, ErrNetwork) || time.Since(begin) < 21*time.Second || len(f.script) != 6 {
			t.Errorf("%v after %v, %d left", err, time.Since(begin), len(f.script))
		}
		f.script = repeat(9, refused)
		if _, err = c.CreateRepository(t.Context(), "r"); !errors.Is(err, ErrNetwork) {
			t.Error(err)
		}
	})
}

// What may have had its effect is not sent twice.
func TestPostIsNotRepeated(t *testing.T) {
	n := 0
	f := &fake{other: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n++; w.WriteHeader(http.StatusBadGateway) })}
	if _, err := newClient(t, f, Retry{}).CreateTenant(t.Context(), "t"); err == nil || n != 1 {
		t.Errorf("%v, sent %d times", err, n)
	}
}

// The address of a link is a secret: no error repeats it.
func TestErrorsHideAddresses(t *testing.T) {
	f := &fake{script: repeat(9, refused), other: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})}
	c, err := New(Config{URL: "http://127.0.0.1:1", Retry: Retry{MinDelay: time.Millisecond, PerRequest: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, client := range []*Client{c, newClient(t, f, Retry{PerRequest: -1})} {
		_, err := client.Download(t.Context(), Download{URL: client.URL() + "/l/s3cret", File: t.TempDir() + "/f"})
		if !errors.Is(err, ErrNetwork) || strings.Contains(err.Error(), "s3cret") {
			t.Error(err)
		}
	}
}
