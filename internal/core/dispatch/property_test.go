package dispatch

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roadstead/roadstead/internal/clock"
)

// history is a random life of a pool, drawn step by step. What it does is a function of what is drawn, so rapid shrinks
// it and prints its seed.
type history struct {
	t        *rapid.T
	m        *Machine
	now      clock.Mono
	runs     map[string]Run
	queued   []string
	active   map[string]Decision
	busy     []string // of active, in the order of their starts
	runners  map[string]Runner
	tenants  map[string]Tenant
	attempts map[string]Attempt
	log      []string
	n        int
}

func newHistory(t *rapid.T) *history {
	m, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	h := &history{
		t: t, m: m, now: clock.Mono(time.Hour), runs: map[string]Run{}, active: map[string]Decision{}, runners: map[string]Runner{},
		tenants: map[string]Tenant{}, attempts: map[string]Attempt{},
	}
	for i := range 3 {
		h.setRunner(i)
	}
	return h
}

func (h *history) draw(what string, n int) int { return rapid.IntRange(0, n-1).Draw(h.t, what) }

func (h *history) setRunner(i int) {
	r := Runner{ID: fmt.Sprintf("r%d", i), Capacity: Vector{Slots: int64(1 + h.draw("slots", 6)), Memory: int64(1+h.draw("memory", 4)) << 30}, State: RunnerState(max(0, h.draw("state", 6)-3))}
	if h.draw("labelled", 3) == 0 {
		r.Labels = []Label{{"zone", "a"}}
	}
	h.runners[r.ID] = r
	h.must(h.m.SetRunner(h.now, r))
}

func (h *history) must(err error) {
	if err != nil {
		h.t.Fatal(err)
	}
}

// step does one thing that may happen.
func (h *history) step() {
	h.now = h.now.Add(time.Duration(h.draw("seconds", 20)) * time.Second)
	switch what := h.draw("what", 20); {
	case what < 8:
		h.submit()
	case what < 12 && len(h.busy) > 0:
		h.end(h.draw("which", len(h.busy)))
	case what == 12 && len(h.queued) > 0:
		id := h.queued[h.draw("which", len(h.queued))]
		h.m.Cancel(h.now, id)
		h.forget(id)
	case what == 13 && len(h.queued) > 0:
		h.block(h.queued[h.draw("which", len(h.queued))])
	case what == 14:
		h.setRunner(h.draw("runner", 4))
	case what == 15:
		t := Tenant{ID: fmt.Sprintf("t%d", h.draw("tenant", 4)), Weight: 1 + h.draw("weight", 4), Cap: Vector{Slots: int64(h.draw("cap", 5))}}
		h.tenants[t.ID] = t
		h.must(h.m.SetTenant(h.now, t))
	case what == 16 && len(h.busy) > 0:
		id := h.busy[h.draw("which", len(h.busy))]
		h.m.Renew(h.now, id, time.Duration(h.draw("elapsed", 100))*time.Second)
	default:
		h.start(h.m.Decide(h.now, 1+h.draw("most", 8)))
	}
}

func (h *history) submit() {
	h.n++
	expected := time.Duration(1+h.draw("expected", 60)) * time.Second
	r := Run{
		ID: fmt.Sprintf("run_%04d", h.n), Tenant: fmt.Sprintf("t%d", h.draw("tenant", 4)), Need: Vector{Slots: int64(1 + h.draw("need", 3)), Memory: int64(h.draw("memory", 5)) << 29},
		Timeout: expected * time.Duration(1+h.draw("timeout", 4)), Expected: expected, Priority: h.draw("priority", 3) - 1,
	}
	if h.draw("labelled", 4) == 0 {
		r.Labels = []Label{{"zone", "a"}}
	}
	if h.draw("later", 5) == 0 {
		r.NotBefore = h.now.Add(time.Duration(h.draw("later", 100)) * time.Second)
	}
	if h.draw("blocked", 8) == 0 {
		r.Blockers = Budget
	}
	h.must(h.m.Submit(h.now, r))
	h.runs[r.ID] = r
	h.queued = append(h.queued, r.ID)
}

func (h *history) block(id string) {
	r := h.runs[id]
	switch h.draw("how", 3) {
	case 0:
		r.Blockers = Budget | Hold
		h.m.Block(h.now, id, r.Blockers)
	case 1:
		r.Blockers = 0
		h.m.Unblock(h.now, id, Budget|Hold)
	default:
		r.QuotaUntil = h.now.Add(time.Duration(h.draw("later", 60)) * time.Second)
		h.m.SetQuota(h.now, id, r.QuotaUntil)
	}
	h.runs[id] = r
}

func (h *history) start(ds []Decision) {
	for _, d := range ds {
		h.log = append(h.log, fmt.Sprint(d.Seq, d.Run, d.Runner, d.Share, d.Charge, d.Start, d.At))
		h.active[d.Run] = d
		h.busy = append(h.busy, d.Run)
		h.queued = slices.DeleteFunc(h.queued, func(id string) bool { return id == d.Run })
	}
}

func (h *history) end(i int) {
	id := h.busy[i]
	h.busy = slices.Delete(h.busy, i, i+1)
	delete(h.active, id)
	took := time.Duration(h.draw("took", 120)) * time.Second
	if h.draw("retry", 4) == 0 {
		r := h.runs[id]
		r.NotBefore = h.now.Add(time.Duration(h.draw("later", 30)) * time.Second)
		h.runs[id] = r
		h.m.Requeue(h.now, id, took, r.NotBefore)
		h.queued = append(h.queued, id)
		return
	}
	h.m.Finish(h.now, id, took)
	delete(h.runs, id)
}

func (h *history) forget(id string) {
	h.queued = slices.DeleteFunc(h.queued, func(q string) bool { return q == id })
	delete(h.runs, id)
}

// state is everything that decides, as text.
func (m *Machine) state() string {
	var b strings.Builder
	fmt.Fprintln(&b, m.Tags(), m.Counts())
	var ids []string
	for h := 1; h < len(m.runs); h++ {
		if m.runs[h].state != free {
			ids = append(ids, m.ids[h])
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		r := &m.runs[m.byID[id]]
		fmt.Fprintln(&b, id, r.key, r.eligible, r.state, r.where == parked, r.where == unfit, r.charged, r.seq, r.blockers, r.due(), m.runners[r.runner].id)
	}
	for _, i := range m.sorted() {
		t := &m.tenants[i]
		fmt.Fprintln(&b, t.id, t.account, t.used, t.queued, t.ready, t.active, t.waiting)
	}
	return b.String()
}

// audit rebuilds every count from the records and compares; whatever is kept twice must agree.
func (h *history) audit() {
	m := h.m
	lanes, ready, act := 0, 0, 0
	used := Vector{}
	for i := 1; i < len(m.runs); i++ {
		r := &m.runs[i]
		if r.state == queued && r.where != parked {
			ready++
		}
		if r.state == active {
			act++
			used.add(&m.shapes[r.shape].vector, 1)
		}
		if r.state == queued && (r.where == unfit) != (!m.ever(&m.shapes[r.shape]) || !m.shapes[r.shape].vector.within(&m.tenants[r.tenant].cap, &Vector{})) && r.where != parked {
			h.t.Fatalf("%s: where %d disagrees with what fits", m.ids[i], r.where)
		}
	}
	for i := 1; i < len(m.tenants); i++ {
		t := &m.tenants[i]
		first := m.head(t)
		may := first != 0 && m.shapes[m.runs[first].shape].vector.within(&t.cap, &t.used)
		if may != t.waiting || t.finish < t.floor {
			h.t.Fatalf("%s: waiting %v, want %v; F %d under its floor %d", t.id, t.waiting, may, t.finish, t.floor)
		}
		for _, l := range t.lanes {
			if (m.lanes[l].at >= 0) != t.waiting || m.lanes[l].at >= 0 && m.lanes[l].finish != t.finish {
				h.t.Fatalf("%s: a lane at %d with tag %d, want %d", t.id, m.lanes[l].at, m.lanes[l].finish, t.finish)
			}
			lanes++
		}
	}
	for i, s := range m.order {
		if m.shapes[s].at != int32(i) || i > 0 && (byHead{m}).before(s, m.order[(i-1)/2]) {
			h.t.Fatalf("the order is no heap at %d", i)
		}
	}
	for i := range m.runners {
		x := &m.runners[i]
		v := x.capacity
		for _, run := range x.runs {
			v.add(&m.shapes[m.runs[run].shape].vector, -1)
		}
		if v != x.free {
			h.t.Fatalf("%s has %v free, counted %v", x.id, v, x.free)
		}
	}
	if ready != m.ready || act != m.active || used != m.used || len(m.order) > lanes {
		h.t.Fatalf("ready %d active %d used %v, counted %d %d %v", ready, act, used, m.ready, m.active, m.used)
	}
}

// conserves reports the first Run that could start now although Decide said that nothing more can.
func (h *history) conserves() {
	m := h.m
	for i := 1; i < len(m.runs); i++ {
		r := &m.runs[i]
		if r.state == queued && r.where == inLane && m.tenants[r.tenant].waiting && m.room(h.now, &m.shapes[r.shape]) != 0 {
			h.t.Fatalf("%s fits and no reservation forbids it, but it was not started", m.ids[i])
		}
	}
}

// Whatever happens, what the machine keeps twice agrees; no runner is given more than it has; nothing starts that has a
// blocker; and no slot is idle while a Run fits that no reservation forbids.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			h.step()
			h.audit()
			for {
				ds := h.m.Decide(h.now, 3)
				for _, d := range ds {
					r := h.runs[d.Run]
					if r.Blockers != 0 || max(r.NotBefore, r.QuotaUntil) > h.now || h.runners[d.Runner].State != Active {
						t.Fatalf("%+v starts on %+v", r, h.runners[d.Runner])
					}
					if c := h.tenants[r.Tenant].Cap; !(Vector{}).within(&c, &h.m.tenants[h.m.tenantOf[r.Tenant]].used) {
						t.Fatalf("%s is over its cap", r.Tenant)
					}
					if x := h.m.runners[h.m.runnerOf[d.Runner]]; x.free[Slots] < 0 || x.free[Memory] < 0 {
						t.Fatalf("%s has %v free", x.id, x.free)
					}
				}
				h.start(ds)
				if len(ds) < 3 {
					break
				}
			}
			h.conserves()
			h.audit()
		}
	})
}

// A batch that is lost is as if it had never been decided: undone in reverse order, whole or from any point on, all is
// what it was to the last bit. Where only some of it is lost, the others' tags don't move and the losers are queued.
func TestUndoIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			h.step()
		}
		h.m.Decide(h.now, 0) // what time alone changes
		before := h.m.state()
		ds := slices.Clone(h.m.Decide(h.now, 50))
		keep := h.draw("keep", len(ds)+1)
		for _, d := range slices.Backward(ds) {
			if !h.m.Undo(h.now, d) {
				t.Fatalf("%s cannot be undone", d.Run)
			}
			if h.m.Undo(h.now, d) {
				t.Fatalf("%s was undone twice", d.Run)
			}
		}
		h.m.seq -= uint64(len(ds)) // numbers are not used again
		if after := h.m.state(); after != before {
			t.Fatalf("undone it is\n%s\nand was\n%s", after, before)
		}
		again := slices.Clone(h.m.Decide(h.now, 50))
		if fmt.Sprint(again) != fmt.Sprint(ds) {
			t.Fatalf("after an undo it decides\n%v\nand before\n%v", again, ds)
		}
		if keep < len(again) { // one loser from the middle
			v := h.m.virtual
			h.m.Undo(h.now, again[keep])
			if h.m.find(again[keep].Run, queued) == 0 || h.m.virtual > v {
				t.Fatalf("%s is lost; V %d, was %d", again[keep].Run, h.m.virtual, v)
			}
		}
		h.audit()
	})
}

// Another machine that is given the rows of this one, in another order, decides the same from there on: also
// when the tags were flushed before the last decisions.
func TestRebuildDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			h.step()
		}
		h.m.Decide(h.now, 0)
		flushed := h.m.Tags()
		if rapid.Bool().Draw(t, "late") {
			h.start(h.m.Decide(h.now, 1+h.draw("most", 5)))
		}
		other := h.rebuild(flushed)
		h.m.Decide(h.now, 0)
		other.Decide(h.now, 0)
		if a, b := fmt.Sprint(h.m.Tags()), fmt.Sprint(other.Tags()); a != b {
			t.Fatalf("the rebuilt machine has the tags\n%s\nand the old one\n%s", b, a)
		}
		for range 10 {
			a, b := h.m.Decide(h.now, 5), other.Decide(h.now, 5)
			if fmt.Sprint(plain(a)) != fmt.Sprint(plain(b)) {
				t.Fatalf("the rebuilt machine decides\n%v\nand the old one\n%v\n%s\n%s", plain(b), plain(a), h.m.state(), other.state())
			}
			h.start(a)
			if len(h.busy) > 0 {
				i := h.draw("which", len(h.busy))
				other.Finish(h.now, h.busy[i], time.Minute)
				h.m.Finish(h.now, h.busy[i], time.Minute)
				h.busy = slices.Delete(h.busy, i, i+1)
			}
		}
	})
}

// plain is a decision without what it keeps for Undo.
func plain(ds []Decision) []Decision {
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].before = tags{}
	}
	return ds
}

func (h *history) rebuild(tags Tags) *Machine {
	m, err := New(Default())
	h.must(err)
	for _, i := range []int{3, 1, 0, 2} {
		if r, ok := h.runners[fmt.Sprintf("r%d", i)]; ok {
			h.must(m.SetRunner(h.now, r))
		}
		if t, ok := h.tenants[fmt.Sprintf("t%d", i)]; ok {
			h.must(m.SetTenant(h.now, t))
		}
	}
	m.SetTags(tags)
	for _, id := range h.busy {
		d, r := h.active[id], &h.m.runs[h.m.byID[id]]
		h.must(m.Resume(h.now, Attempt{Run: h.row(id), Runner: d.Runner, Seq: d.Seq, Since: r.since, Share: r.share, Charged: r.charged, Start: d.Start}))
	}
	for _, id := range slices.Backward(h.queued) {
		h.must(m.Submit(h.now, h.row(id)))
	}
	return m
}

// row is a Run as its row has it.
func (h *history) row(id string) Run {
	r := h.runs[id]
	r.EligibleAt, r.Eligible = h.m.Position(id)
	r.Blockers = h.m.runs[h.m.byID[id]].blockers
	return r
}

// One log of events gives the same decisions each time it is played.
func TestReplay(t *testing.T) {
	play := func(seed int) uint64 {
		f := fnv.New64a()
		h := rapid.Custom(func(t *rapid.T) *history {
			h := newHistory(t)
			for range 400 {
				h.step()
			}
			return h
		}).Example(seed)
		for _, l := range h.log {
			fmt.Fprintln(f, l)
		}
		if len(h.log) < 20 {
			t.Fatalf("seed %d: %d decisions", seed, len(h.log))
		}
		return f.Sum64()
	}
	for seed := range 5 {
		first := play(seed)
		for range 19 {
			if again := play(seed); again != first {
				t.Fatalf("seed %d: one log, hashes %x and %x", seed, first, again)
			}
		}
	}
}
