package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

// hostile speaks a runner's protocol as it likes: it never kills, never fences itself and believes no answer.
type hostile struct {
	t      *testing.T
	s      *apptest.Server
	me     api.RegisteredRunner
	taken  api.Assignment
	ack    int64
	orders []api.Order
}

func newHostile(t *testing.T, s *apptest.Server, name string) *hostile {
	t.Helper()
	var token api.RunnerToken
	if a := s.JSON(s.Key, "POST", "/api/v1/pools/default/runner-tokens", struct{}{}, &token); a.Status >= 300 {
		t.Fatalf("a token: %d %s", a.Status, a.Body)
	}
	h := &hostile{t: t, s: s}
	in := api.RegisterRunner{
		Token: token.Token, Name: name, Protocol: api.RunnerProtocol,
		Capacity: api.Resources{Slots: 4, MilliCPU: 8000, MemoryBytes: 8 << 30, DiskBytes: 16 << 30},
	}
	if a := s.JSON("", "POST", "/api/v1/runners/register", in, &h.me); a.Status >= 300 {
		t.Fatalf("registering: %d %s", a.Status, a.Body)
	}
	return h
}

// exchange is one call, in which it holds what it is said to.
func (h *hostile) exchange(holds ...api.Assignment) api.Exchanged {
	h.t.Helper()
	in := api.Exchange{Protocol: api.RunnerProtocol, Acknowledged: h.ack, Holds: []api.HeldLease{}, WaitSeconds: 1}
	for _, a := range holds {
		in.Holds = append(in.Holds, api.HeldLease{Attempt: a.Attempt, Fence: a.Fence})
	}
	var out api.Exchanged
	if a := h.s.JSON(h.me.Key, "POST", "/api/v1/runner/exchange", in, &out); a.Status != http.StatusOK {
		h.t.Fatalf("exchange: %d %s", a.Status, a.Body)
	}
	h.orders = out.Orders
	return out
}

// take exchanges until it is given an Attempt of the Run.
func (h *hostile) take(run string) {
	h.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		out := h.exchange()
		for _, a := range out.Assignments {
			h.ack = max(h.ack, a.Sequence)
			if a.Run == run {
				h.taken = a
				return
			}
		}
	}
	h.t.Fatalf("no Attempt of %s came", run)
}

// call posts to the Attempt with its fence.
func (h *hostile) call(what string, in, out any) apptest.Answer {
	h.t.Helper()
	return h.s.JSON(h.me.Key, "POST", "/api/v1/runner/attempts/"+h.taken.Attempt+"/"+what, in, out)
}

func (h *hostile) must(what string, in, out any) {
	h.t.Helper()
	if a := h.call(what, in, out); a.Status >= 300 {
		h.t.Fatalf("%s: %d %s", what, a.Status, a.Body)
	}
}

func (h *hostile) grant(content string) (g api.UploadGrant, r api.JobResult) {
	h.t.Helper()
	sum := sha256.Sum256([]byte(content))
	r = api.JobResult{Name: "x", Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
	h.must("grants", api.NewGrant{Fence: h.taken.Fence, Kind: "result", Name: "x", Digest: r.Digest, Size: r.Size}, &g)
	return g, r
}

func (h *hostile) upload(g api.UploadGrant, content string) apptest.Answer {
	return h.s.Do("PUT", g.Path, strings.NewReader(content), "Authorization", "Bearer "+g.Grant)
}

func (h *hostile) object(digest string) apptest.Answer {
	return h.s.Do("GET", "/api/v1/runner/attempts/"+h.taken.Attempt+"/objects/"+digest, nil,
		"Authorization", "Bearer "+h.me.Key, api.HeaderFence, fmt.Sprint(h.taken.Fence))
}

func (h *hostile) fenced() api.Fenced { return api.Fenced{Fence: h.taken.Fence} }

func success(fence int64, r ...api.JobResult) api.JobReport {
	return api.JobReport{Fence: fence, Outcome: "exited", Manifest: append([]api.JobResult{}, r...)}
}

// priced is a server whose leases are short, with a price, a secret and an input.
func priced(t *testing.T) *apptest.Server {
	t.Helper()
	s := apptest.Start(t, func(c *app.Config) {
		c.RunnerSlots, c.RunnerLease, c.RunnerHeartbeat, c.Drain = 0, lease, heartbeat, time.Second
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	var pool api.Pool
	s.JSON(s.Key, "GET", "/api/v1/pools/default", nil, &pool)
	pool.Policy.PriceMicro = 1000
	for _, a := range []apptest.Answer{
		s.JSON(s.Key, "PUT", "/api/v1/pools/default", api.PoolChange{ExpectedRevision: pool.Revision, Policy: pool.Policy}, nil),
		s.JSON(s.Key, "POST", "/api/v1/secrets", api.NewSecret{Name: "token", SecretValue: api.SecretValue{Value: "open sesame"}}, nil),
		s.JSON(s.Key, "POST", "/api/v1/repositories", map[string]string{"name": "data"}, nil),
		s.Do("PUT", "/files/data/in", strings.NewReader("input")),
	} {
		if a.Status >= 300 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	return s
}

func submit(t *testing.T, s *apptest.Server, losses int) string {
	t.Helper()
	var out api.Submitted
	a := s.JSON(s.Key, "POST", "/api/v1/runs", api.NewRun{
		Command: []string{"true"}, Outputs: []api.Output{{Name: "x"}}, Secrets: []string{"token"}, Timeout: 600,
		Inputs: map[string]api.Input{"in": {File: "data/in"}}, Retry: &api.Retry{Losses: losses, BackoffSeconds: 1},
	}, &out)
	if a.Status >= 300 {
		t.Fatalf("submit: %d %s", a.Status, a.Body)
	}
	return out.Runs[0].ID
}

func look(t *testing.T, s *apptest.Server, id string) (r api.Run) {
	t.Helper()
	if a := s.JSON(s.Key, "GET", "/api/v1/runs/"+id, nil, &r); a.Status != http.StatusOK {
		t.Fatalf("the Run: %d %s", a.Status, a.Body)
	}
	return r
}

// A runner that was taken for lost and fences itself by nothing is refused every call with its old fence and told to
// stop; the newer Attempt alone makes the manifest, and both are paid for (R-4.2, R-6.3, R-8.4, R15, R21).
func TestTakenOver(t *testing.T) {
	s := priced(t)
	run := submit(t, s, 1)
	old := newHostile(t, s, "old")
	old.take(run)
	var job api.Job
	old.must("starting", old.fenced(), &job)
	old.must("running", old.fenced(), nil)
	grant, result := old.grant("of the old")
	spare, _ := old.grant("more of the old")
	if a := old.upload(grant, "of the old"); a.Status >= 300 {
		t.Fatalf("upload: %d %s", a.Status, a.Body)
	}
	if len(job.Inputs) != 1 || old.object(job.Inputs[0].Object.Digest).Status != http.StatusOK {
		t.Fatalf("the input can't be read: %+v", job.Inputs)
	}

	// From here on it is silent. Another takes over.
	young := newHostile(t, s, "young")
	young.take(run)
	if young.taken.Fence <= old.taken.Fence || young.taken.Attempt == old.taken.Attempt {
		t.Fatalf("taken over as %+v after %+v", young.taken, old.taken)
	}
	refused := func(when string) {
		t.Helper()
		digest := job.Inputs[0].Object.Digest
		for what, a := range map[string]apptest.Answer{
			"starting": old.call("starting", old.fenced(), nil),
			"running":  old.call("running", old.fenced(), nil),
			"logs":     old.call("logs", api.JobLogs{Fence: old.taken.Fence, First: 1, Lines: []api.JobLine{{Stream: "stdout", Text: "still here"}}}, nil),
			"grant":    old.call("grants", api.NewGrant{Fence: old.taken.Fence, Kind: "result", Name: "x", Digest: result.Digest, Size: result.Size}, nil),
			"secrets":  old.call("secrets", old.fenced(), nil),
			"object":   old.object(digest),
			"report":   old.call("report", success(old.taken.Fence, result), nil),
			"borrowed": old.call("report", success(young.taken.Fence, result), nil), // the new fence does not open the old Attempt
		} {
			if p := s.Problem(a); a.Status != http.StatusConflict || p.Reason != api.ReasonLeaseLost {
				t.Errorf("%s, %s: %d %s", when, what, a.Status, a.Body)
			}
		}
		if a := old.upload(spare, "more of the old"); a.Status < 400 || a.Status >= 500 {
			t.Errorf("%s, upload with an old grant: %d %s", when, a.Status, a.Body)
		}
		if old.exchange(old.taken); len(old.orders) != 1 || old.orders[0] != (api.Order{Attempt: old.taken.Attempt, Order: "lost"}) {
			t.Errorf("%s it is told %+v", when, old.orders)
		}
	}
	refused("when taken over")
	thief := *old
	thief.taken = young.taken
	if a := thief.call("report", success(young.taken.Fence, result), nil); a.Status != http.StatusConflict {
		t.Errorf("another's Attempt was reported: %d %s", a.Status, a.Body)
	}

	young.must("starting", young.fenced(), nil)
	young.must("running", young.fenced(), nil)
	good, proper := young.grant("of the young")
	if a := young.upload(good, "of the young"); a.Status >= 300 {
		t.Fatalf("upload: %d %s", a.Status, a.Body)
	}
	young.exchange(young.taken) // a second passes, for which is paid
	var said api.JobReported
	young.must("report", success(young.taken.Fence, proper), &said)
	refused("after the end")

	r := look(t, s, run)
	if said.State != "succeeded" || r.State != "succeeded" || len(r.Results) != 1 || r.Results[0].Digest != proper.Digest {
		t.Errorf("it ended as %+v, the Run as %s with %+v", said, r.State, r.Results)
	}
	if len(r.Attempts) != 2 || r.Attempts[0].Reason != "lease_lost" || r.Attempts[0].CostMicro == 0 || r.Attempts[1].CostMicro == 0 ||
		r.SpentMicro != r.Attempts[0].CostMicro+r.Attempts[1].CostMicro {
		t.Errorf("paid %d: %+v", r.SpentMicro, r.Attempts)
	}
}

// What a runner says changes nothing that is billed and nothing that is verified: digests that were never uploaded, or
// are another's, or another Attempt's, read as absent, and usage is its own word.
func TestLyingRunner(t *testing.T) {
	s := priced(t)
	liar := newHostile(t, s, "liar")
	sum := sha256.Sum256([]byte("input"))
	foreign := api.JobResult{Name: "x", Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: 5}
	never := api.JobResult{Name: "x", Digest: "sha256:" + strings.Repeat("ab", 32), Size: 5}
	begin := func() string {
		run := submit(t, s, 0)
		liar.take(run)
		liar.must("starting", liar.fenced(), nil)
		liar.must("running", liar.fenced(), nil)
		return run
	}
	uploaded := func(content string) api.JobResult {
		g, r := liar.grant(content)
		if a := liar.upload(g, content); a.Status >= 300 {
			t.Fatalf("upload: %d %s", a.Status, a.Body)
		}
		return r
	}
	begin()
	earlier := uploaded("of an earlier Attempt")
	liar.must("report", success(liar.taken.Fence, earlier), nil)
	for name, lie := range map[string]func() []api.JobResult{
		"nothing":           func() []api.JobResult { return nil },
		"a foreign object":  func() []api.JobResult { return []api.JobResult{foreign} },
		"never uploaded":    func() []api.JobResult { return []api.JobResult{never} },
		"granted only":      func() []api.JobResult { _, r := liar.grant("not sent"); return []api.JobResult{r} },
		"another Attempt's": func() []api.JobResult { return []api.JobResult{earlier} },
		"another size":      func() []api.JobResult { r := uploaded("sized"); r.Size++; return []api.JobResult{r} },
		"an unknown name":   func() []api.JobResult { r := uploaded("named"); r.Name = "y"; return []api.JobResult{r} },
		"one twice":         func() []api.JobResult { r := uploaded("twice"); return []api.JobResult{r, r} },
	} {
		t.Run(name, func(t *testing.T) {
			run := begin()
			report := success(liar.taken.Fence, lie()...)
			report.Usage = api.Usage{WallMillis: 1e12, CPUMillis: 1e12, MemoryBytes: 1 << 60}
			liar.must("report", report, nil)
			if r := look(t, s, run); r.State != "failed" || r.Reason != "results_unverified" || len(r.Results) != 0 || r.SpentMicro > 60*1000 {
				t.Errorf("%s %s, %d results, paid %d", r.State, r.Reason, len(r.Results), r.SpentMicro)
			}
		})
	}
	t.Run("other bytes than granted", func(t *testing.T) {
		run := begin()
		g, r := liar.grant("promised")
		if a := liar.upload(g, "modified"); a.Status < 400 || a.Status >= 500 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		liar.must("report", success(liar.taken.Fence, r), nil)
		if r := look(t, s, run); r.Reason != "results_unverified" {
			t.Errorf("%s %s", r.State, r.Reason)
		}
	})
	t.Run("two ends", func(t *testing.T) {
		run := begin()
		r := uploaded("the result")
		first, other := success(liar.taken.Fence, r), success(liar.taken.Fence, r)
		other.ExitCode = 3
		liar.must("report", first, nil)
		liar.must("report", first, nil) // the same again is the same answer
		if a := liar.call("report", other, nil); a.Status != http.StatusConflict {
			t.Errorf("another end: %d %s", a.Status, a.Body)
		}
		if r := look(t, s, run); r.State != "succeeded" {
			t.Errorf("%s %s", r.State, r.Reason)
		}
	})
	t.Run("not its object", func(t *testing.T) {
		begin()
		if a := liar.object(earlier.Digest); a.Status != http.StatusNotFound {
			t.Errorf("an object that its job does not name: %d", a.Status)
		}
	})
}

// The same finish again after it failed once gives the same manifest, and two Attempts never meet on a name (R03). The
// first answer of the server is lost on the way: the runner only knows that it must ask again.
func TestFinishIsRepeated(t *testing.T) {
	s := priced(t)
	run := submit(t, s, 0)
	h := newHostile(t, s, "patient")
	h.take(run)
	h.must("starting", h.fenced(), nil)
	h.must("starting", h.fenced(), nil)
	h.must("running", h.fenced(), nil)
	h.must("running", h.fenced(), nil)
	g, result := h.grant("whole")
	cut, stop := context.WithCancel(t.Context())
	half, rest := io.Pipe()
	req, err := http.NewRequestWithContext(cut, "PUT", s.URL+g.Path, half)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = result.Size
	req.Header.Set("Authorization", "Bearer "+g.Grant)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close() // it was cut, whatever it says
		}
	}()
	if _, err := rest.Write([]byte("wh")); err != nil {
		t.Fatal(err)
	}
	stop()
	_ = rest.CloseWithError(io.ErrUnexpectedEOF) // never fails; the client may be waiting for more of the body
	<-done
	again, _ := h.grant("whole")
	if again.Done {
		t.Error("half an object counts as whole")
	}
	if a := h.upload(again, "whole"); a.Status >= 300 {
		t.Errorf("the whole object: %d %s", a.Status, a.Body)
	}
	if third, _ := h.grant("whole"); !third.Done {
		t.Error("what is there is to be sent again")
	}
	var first, second api.JobReported
	h.must("report", success(h.taken.Fence, result), &first)
	h.must("report", success(h.taken.Fence, result), &second)
	one, _ := json.Marshal(first) // they are plain
	two, _ := json.Marshal(second)
	if first.State != "succeeded" || !bytes.Equal(one, two) {
		t.Errorf("%s, then %s", one, two)
	}
}
