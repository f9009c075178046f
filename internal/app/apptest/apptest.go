// Package apptest starts the whole server for tests, on a free port of the loopback with a directory of its own.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
)

// Server is a running server.
type Server struct {
	URL    string
	Key    string // the operator's API key
	Config app.Config

	t    testing.TB
	stop context.CancelFunc
	done chan error // Run's and Close's result
}

// Start starts a server that ends with the test. change adapts the configuration of a server that nobody configured.
func Start(t testing.TB, change ...func(*app.Config)) *Server {
	t.Helper()
	cfg := app.Default()
	cfg.Data, cfg.Listen, cfg.DiskReserve = t.TempDir(), "127.0.0.1:0", 0
	cfg.RunnerSlots = 0 // a runner would start this test program again as its supervisor
	for _, c := range change {
		c(&cfg)
	}
	s := &Server{Config: cfg, t: t}
	s.start()
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) start() {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	a, err := app.Open(ctx, s.Config, app.Options{Version: "test"})
	if err != nil {
		stop()
		s.t.Fatalf("start the server: %v", err)
	}
	key, err := os.ReadFile(a.OperatorKeyFile())
	if err != nil {
		s.t.Fatal(err)
	}
	s.URL, s.Key, s.stop, s.done = a.URL(), strings.TrimSpace(string(key)), stop, make(chan error, 1)
	s.Config.Listen = a.Addr() // a restart comes back at the same address
	go func() {
		err := a.Run(ctx)
		if cerr := a.Close(); err == nil {
			err = cerr
		}
		s.done <- err
	}()
}

// Stop drains the server, as TERM does, and waits for its end. Stopping it again does nothing.
func (s *Server) Stop() {
	s.t.Helper()
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := <-s.done; err != nil {
		s.t.Errorf("stop the server: %v", err)
	}
}

// BeginStop is Stop without the wait; Stop then waits.
func (s *Server) BeginStop() { s.stop() }

// Restart stops the server and starts it over the same directory.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.start()
}

// Answer is an HTTP answer with its body read.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request as the operator. headers are pairs; an Authorization among them replaces the operator's.
func (s *Server) Do(method, path string, body io.Reader, headers ...string) Answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: reading the answer: %v", method, path, err)
	}
	return Answer{res.StatusCode, res.Header, data}
}

// JSON sends a JSON request as the owner of the key and decodes the answer into out unless that is nil.
func (s *Server) JSON(key, method, path string, in, out any) Answer {
	s.t.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	a := s.Do(method, path, body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	if out != nil && a.Status < 300 {
		if err := json.Unmarshal(a.Body, out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, a.Body)
		}
	}
	return a
}

// Problem decodes a refusal.
func (s *Server) Problem(a Answer) (p api.Problem) {
	s.t.Helper()
	if err := json.Unmarshal(a.Body, &p); err != nil {
		s.t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return p
}

// Repository makes a repository.
func (s *Server) Repository(name string) {
	s.t.Helper()
	if a := s.JSON(s.Key, "POST", "/api/v1/repositories", api.NewRepository{Name: name}, nil); a.Status != http.StatusCreated {
		s.t.Fatalf("make repository %s: %d %s", name, a.Status, a.Body)
	}
}

// Put stores a file and returns it.
func (s *Server) Put(repository, path string, content []byte) (f api.File) {
	s.t.Helper()
	a := s.Do("PUT", api.PathFiles+repository+"/"+path, bytes.NewReader(content))
	if a.Status != http.StatusCreated && a.Status != http.StatusOK {
		s.t.Fatalf("put %s/%s: %d %s", repository, path, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &f); err != nil {
		s.t.Fatal(err)
	}
	return f
}

// ServiceAccount makes a service account, gives it the role on the repository unless that is empty, and returns its
// id and an API key.
func (s *Server) ServiceAccount(name, repository, role string) (id, key string) {
	s.t.Helper()
	var account api.Account
	s.JSON(s.Key, "POST", "/api/v1/service-accounts", api.NewAccount{Name: name}, &account)
	var made api.Key
	s.JSON(s.Key, "POST", "/api/v1/keys", api.NewKey{Account: account.ID, Name: "test"}, &made)
	if repository != "" {
		path := "/api/v1/repositories/" + repository + "/grants/" + account.ID
		if a := s.JSON(s.Key, "PUT", path, api.GrantRole{Role: role}, nil); a.Status != http.StatusOK {
			s.t.Fatalf("grant: %d %s", a.Status, a.Body)
		}
	}
	if made.Secret == "" {
		s.t.Fatalf("no key for service account %s", name)
	}
	return account.ID, made.Secret
}
