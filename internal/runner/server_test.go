package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/executor/sandbox"
	"github.com/roadstead/roadstead/internal/executor/supervisor"
)

// TestMain lets the test's program be its own supervisor and the stage inside the sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		err := supervise(os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func supervise(args []string) error {
	if len(args) > 0 && args[0] == "--enter" {
		return sandbox.Enter()
	}
	return supervisor.Main(os.Stdin, os.Stdout)
}

// server plays the other side: it hands out one job and hears of it.
type server struct {
	*httptest.Server
	t    *testing.T
	dir  string // of the runner that calls
	job  api.Job
	work api.Assignment

	mu      sync.Mutex
	refuse  map[string][]int // statuses that the next calls of a kind get; 0: the connection is cut
	calls   map[string]int
	state   string
	reports []string
	lost    bool
	cancel  bool // ordered in every answer
	drain   bool
	silent  bool // exchanges are held and renew nothing
	unsaved int  // acknowledgements of what was not on the runner's disk
	objects map[string][]byte
	onGrant func()
	heard   chan struct{} // closed with the first report that was accepted
}

func newServer(t *testing.T, script string) *server {
	s := &server{
		t: t, refuse: map[string][]int{}, calls: map[string]int{}, state: "assigned", objects: map[string][]byte{}, heard: make(chan struct{}),
		work: api.Assignment{Attempt: "att_" + strings.ReplaceAll(t.Name(), "/", "-"), Run: "run_1", Fence: 3, Sequence: 7},
		job: api.Job{
			Run: "run_1", Tenant: "t", Number: 3, Command: []string{"sh", "-c", script}, Timeout: 60, Grace: 1, LogBytes: 1 << 20, Pids: 64,
			Resources: api.Resources{Slots: 1, MilliCPU: 1000, MemoryBytes: 64 << 20, DiskBytes: 16 << 20},
		},
	}
	s.job.Attempt = s.work.Attempt
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := filepath.Base(r.URL.Path)
	body, err := io.ReadAll(r.Body)
	if strings.Contains(r.URL.Path, "/objects/") {
		s.object(w, kind)
		return
	}
	s.mu.Lock()
	s.calls[kind]++
	status := 200
	if next := s.refuse[kind]; len(next) > 0 {
		status, s.refuse[kind] = next[0], next[1:]
	}
	s.mu.Unlock()
	if status == 0 || err != nil {
		panic(http.ErrAbortHandler)
	}
	if status != 200 {
		w.WriteHeader(status)
		return
	}
	switch kind {
	case "exchange":
		s.exchange(w, r, body)
	case "starting":
		s.begin(w, "starting")
	case "running":
		s.begin(w, "running")
	case "grants":
		s.grant(w)
	case "secrets":
		answer(w, api.JobSecrets{Secrets: map[string][]byte{}})
	case "report":
		s.report(w, body)
	default: // logs, uploads
		w.WriteHeader(http.StatusNoContent)
	}
}

func answer(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // a caller that went asks again
}

func (s *server) object(w http.ResponseWriter, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["object"]++
	_, _ = w.Write(s.objects[digest]) // likewise
}

func (s *server) exchange(w http.ResponseWriter, r *http.Request, body []byte) {
	var in api.Exchange
	if err := json.Unmarshal(body, &in); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	if in.Acknowledged >= s.work.Sequence && s.state == "assigned" {
		if _, err := os.Stat(filepath.Join(s.dir, "assignments", s.work.Attempt+".json")); err != nil {
			s.unsaved++
		}
	}
	out := api.Exchanged{Assignments: []api.Assignment{}, Orders: []api.Order{}, LeaseSeconds: 30, Sequence: s.work.Sequence}
	if s.state == "assigned" && in.Acknowledged < s.work.Sequence {
		out.Assignments = append(out.Assignments, s.work)
	}
	for _, h := range in.Holds {
		if s.lost {
			out.Orders = append(out.Orders, api.Order{Attempt: h.Attempt, Order: "lost"})
		}
		if s.cancel {
			out.Orders = append(out.Orders, api.Order{Attempt: h.Attempt, Order: "cancel"})
		}
	}
	out.Drain = s.drain
	silent, told := s.silent, s.drain && !in.Draining
	s.mu.Unlock()
	for hold := time.Second; silent || !told && len(out.Assignments)+len(out.Orders) == 0 && hold > 0; hold -= 50 * time.Millisecond {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		s.mu.Lock()
		silent = silent && s.silent
		s.mu.Unlock()
	}
	answer(w, out)
}

func (s *server) begin(w http.ResponseWriter, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || state == "starting" && s.state == "running" || s.state == "over" {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.state = state
	if state == "starting" {
		answer(w, s.job)
	}
}

func (s *server) grant(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onGrant != nil {
		s.onGrant()
	}
	answer(w, api.UploadGrant{Grant: "g", Path: "/api/v1/runner/uploads"})
}

func (s *server) report(w http.ResponseWriter, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, string(body))
	if s.state != "over" {
		s.state = "over"
		close(s.heard)
	}
	answer(w, api.JobReported{State: "succeeded"})
}

func (s *server) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[kind]
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// told is the report that was accepted.
func (s *server) told(t *testing.T) (r api.JobReport) {
	t.Helper()
	select {
	case <-s.heard:
	case <-time.After(time.Minute):
		t.Fatalf("no report; calls: %v", s.calls)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.Unmarshal([]byte(s.reports[0]), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// folder is a runner's, already registered; others may pass through it.
func folder(t *testing.T, s *server) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; strings.HasPrefix(d, os.TempDir()) && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(api.RegisteredRunner{Runner: "rnr_1", Key: "k", Pool: "p", LeaseSeconds: 30, HeartbeatSeconds: 1})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "registration.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	return dir
}

// begin starts a runner in the folder; stop ends its process, and not what it runs.
func begin(t *testing.T, s *server, dir string) (r *Runner, stop func()) {
	t.Helper()
	r = open(t, s, dir)
	ctx, cancel := contextOf(t)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the runner: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return r, stop
}

func open(t *testing.T, s *server, dir string) *Runner {
	t.Helper()
	cfg := Config{
		Server: s.URL, Dir: dir, Name: "r", Capacity: api.Resources{Slots: 2},
		Executor: executor.Config{FirstUser: executor.DefaultFirstUser, Users: 8},
	}
	r, err := New(t.Context(), cfg, clock.NewSystem())
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs what holds Attempts to their limits: ", err)
	}
	return r
}
