package dispatch

import "time"

// account is a tenant's place in the order, and the measure of its fairness.
//
// F, the finish tag, is where its next Run starts. While the tenant waits without a pause F is an exact account: it
// moves by what its Runs cost over its weight, at first as expected, in the end as measured. So a refund may take F
// below V, because V went on while the tenant was charged too much; but never below the floor, V as it was when the
// tenant came: whatever it was denied before then it did not want. Whoever comes back starts at V at least.
//
// A tenant whose work found no room while others went on is served first among those it competes with, because its F
// stayed where it was; but it does not keep what it missed: only owed, refunds not used yet, may leave F below V when
// it starts a Run. Otherwise the tenants of a few special runners would fall behind V for ever, and one that joins
// them at V would wait for ever.
type account struct {
	finish, floor, owed Tag
	seq                 uint64 // the last decision that is counted
	changes             uint32 // how often this changed

	from    Tag           // F at the beginning of the span that is measured
	worst   Tag           // largest |F - V| in it
	served  time.Duration // charged in it
	largest time.Duration // the largest cost of a Run
	up      time.Duration // charged over the estimates since the last start
	drift   time.Duration // the most of that, and of what was owed
}

// tags are what a decision changed, for Undo.
type tags struct {
	account account
	after   uint32 // account.changes after it
	virtual Tag
	last    uint64 // the decision before it
}

// advance is by how much a cost moves a tag.
func advance(cost time.Duration, weight int) Tag {
	if cost <= 0 {
		return 0
	}
	return max(1, (Tag(cost)+Tag(weight)/2)/Tag(weight))
}

// comes takes a tenant into the order, without arrears.
func (a *account) comes(v Tag) {
	if a.finish <= v {
		a.finish, a.largest, a.drift = v, 0, 0
	}
	a.floor, a.owed = v, 0
	a.begin()
	a.changes++
}

// begin starts a span to be measured.
func (a *account) begin() { a.from, a.served, a.worst, a.up = a.finish, 0, 0, 0 }

// observe notes how far the tenant is from V.
func (a *account) observe(v Tag) { a.worst = max(a.worst, a.finish-v, v-a.finish) }

// starts charges a Run at its start. It returns the tag the Run starts at.
func (a *account) starts(v Tag, weight int, cost time.Duration) Tag {
	if least := v - a.owed; a.finish < least {
		a.finish = least
		a.begin()
	}
	a.observe(v)
	s := a.finish
	a.finish += advance(cost, weight)
	a.owed = min(a.owed, max(0, v-a.finish))
	a.served += cost
	a.largest = max(a.largest, cost)
	a.up = 0
	a.observe(max(v, s))
	a.changes++
	return s
}

// corrects charges more for a Run, or gives back; whole is what the Run cost in all.
func (a *account) corrects(v Tag, weight int, by, whole time.Duration) {
	a.largest = max(a.largest, whole)
	switch {
	case by > 0:
		a.finish += advance(by, weight)
		a.served += by
		a.up += by
		a.drift = max(a.drift, a.up)
	case by < 0:
		back := min(advance(-by, weight), a.finish-a.floor)
		a.finish -= back
		a.served += by
		if a.finish < v {
			a.owed = min(a.owed+back, v-a.finish)
			a.drift = max(a.drift, time.Duration(a.owed)*time.Duration(weight))
		}
	}
	a.changes++
}

// returns takes back the charge of a Run that did not start, when what came after it stands.
func (a *account) returns(weight int, cost time.Duration) {
	a.finish = max(a.finish-advance(cost, weight), min(a.floor, a.finish))
	a.served -= cost
	a.changes++
}
