package storm

import (
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// turns compares what those who wait at the same time are given: starts of each pair of classes over their weights, and
// starts of each pair of principals in a class, counted while both wait and could start (D-4.1, D-3.1).
type turns struct {
	n          int
	classes    [class.Count][class.Count]float64 // starts of the first over its weight while the second waits too
	principals [class.Count][]int32              // n x n: starts of the first while the second waits too
}

func newTurns(n int) turns {
	t := turns{n: n}
	for c := range t.principals {
		t.principals[c] = make([]int32, n*n)
	}
	return t
}

func (t *turns) reset() {
	t.classes = [class.Count][class.Count]float64{}
	for c := range t.principals {
		clear(t.principals[c])
	}
}

// started counts a start, before the book moves it, and checks the bound: the order of marks alone keeps a pair within
// one start each; of those called together the first to come goes first, and twice as many as there are seats are called
// (D-2.12): so many starts may come before the turn of another, and no more. Of two principals one may have a turn owed
// from when it had its share (D-4.4).
func (t *turns) started(b *book, _ clock.Mono, r *record) {
	if b.w.sc.weather != shares || b.w.policy.Strategy != session.Ordered {
		return
	}
	t.shut(b)
	w := &b.w.policy.Weights
	called := float64(2 * b.w.policy.Sessions)
	for j := range t.classes {
		o := class.Class(j)
		if o == r.class {
			continue
		}
		if !t.contends(b, o) {
			continue
		}
		t.classes[r.class][j] += 1 / float64(w[r.class])
		lead := t.classes[r.class][j] - t.classes[j][r.class]
		most := (1+called)/float64(w[r.class]) + 1/float64(w[j])
		b.w.stats.Lead = max(b.w.stats.Lead, lead/most)
		if lead > most {
			b.fail(r.key, "class %s is %.1f rounds ahead of class %s, allowed are %.1f (D-4.1)", r.class, lead, o, most)
		}
	}
	t.peers(b, r, int32(called)+2)
	if b.holds[r.principal]+1 >= b.w.policy.PerPrincipal {
		for c := range t.principals {
			t.forget(c, r.principal) // at its share its turns pass, and don't come back (D-4.4)
		}
	}
}

// left begins the counts of a principal, or a class, anew when its last session left the queue: what it had coming does
// not wait for it.
func (t *turns) left(b *book, r *record) {
	if b.w.sc.weather != shares {
		return
	}
	if b.lines[r.class] == 0 {
		t.anew(int(r.class))
	}
	for _, o := range b.waiting {
		if o.class == r.class && o.principal == r.principal {
			return
		}
	}
	t.forget(int(r.class), r.principal)
}

// forget begins the counts of a principal in a class anew.
func (t *turns) forget(c, p int) {
	row := t.principals[c]
	for q := range t.n {
		row[p*t.n+q], row[q*t.n+p] = 0, 0
	}
}

// shut begins the counts of classes anew that could not have this seat: they come back without arrears.
func (t *turns) shut(b *book) {
	for j := range t.classes {
		if !t.contends(b, class.Class(j)) {
			t.anew(j)
		}
	}
}

// stood is told of a seat that comes free: who was called to it was called while its principal had its share, so those
// of the principal were passed over, and a class that has no others with them (D-4.4).
func (t *turns) stood(b *book, r *record) {
	if b.under(r.principal) {
		return
	}
	for _, o := range b.waiting {
		if o.principal == r.principal {
			t.anew(int(o.class))
			o.skipped = true
		}
	}
}

// anew begins the counts of a class anew.
func (t *turns) anew(c int) {
	for i := range t.classes {
		t.classes[i][c], t.classes[c][i] = 0, 0
	}
}

// contends reports whether a class could have a seat and has somebody waiting whose principal is under its share.
func (t *turns) contends(b *book, c class.Class) bool {
	if b.lines[c] == 0 || !b.seatFor(c) {
		return false
	}
	for _, o := range b.waiting {
		if o.class == c && b.under(o.principal) {
			return true
		}
	}
	return false
}

// peers compares the principal with each other one of its class.
func (t *turns) peers(b *book, r *record, slack int32) {
	row := t.principals[r.class]
	seen := make([]bool, t.n)
	for _, o := range b.waiting {
		seen[o.principal] = seen[o.principal] || o.class == r.class && b.under(o.principal)
	}
	p := r.principal
	for q, there := range seen {
		switch {
		case q == p:
		case !there:
			row[p*t.n+q], row[q*t.n+p] = 0, 0
		default:
			row[p*t.n+q]++
			if lead := row[p*t.n+q] - row[q*t.n+p]; lead > slack {
				b.fail(r.key, "principal %d is %d starts ahead of principal %d in class %s, allowed are %d (D-3.1)", p, lead, q, r.class, slack)
			}
		}
	}
}
