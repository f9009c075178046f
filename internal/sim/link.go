package sim

import (
	"container/heap"
	"math"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

// link is the scarce link as a fluid: its rate is split evenly between the principals that have flows, a principal's
// part evenly between its flows, and what a flow cannot take because of its own peak goes to the others. This is the
// governor's split (D-12.2).
//
// The flows of one principal run at one rate, so a lane keeps a single count of bytes per flow, and a flow is a point
// on that count. A change therefore costs as many steps as there are active principals, not flows.
type link struct {
	rate  float64 // bytes a second
	peak  float64 // highest rate of one flow; 0 for none
	now   clock.Mono
	lanes []*lane // principals with flows, in an order that depends on the history only
	byID  []*lane // all principals
	sent  float64 // bytes in all
	stale bool    // rates must be shared out anew
}

// lane is one principal's part of the link.
type lane struct {
	index   int     // in link.lanes
	served  float64 // bytes each flow got since the lane became active
	rate    float64 // bytes a second of each flow
	settled bool    // its rate is found, during share
	flows   flows
}

// flow is one download's bytes on their way.
type flow struct {
	client *client
	lane   *lane
	index  int     // in lane.flows
	start  float64 // lane.served when it began
	length int64
}

// halfByte absorbs the rounding of instants to nanoseconds: a flow with less than this to go is through.
const halfByte = 0.5

func newLink(rate Rate, peak float64, principals int) *link {
	return &link{rate: float64(rate), peak: peak, byID: make([]*lane, principals)}
}

// add starts a flow of length bytes for a principal.
func (l *link) add(c *client, principal int, length int64) *flow {
	ln := l.byID[principal]
	if ln == nil {
		ln = &lane{}
		l.byID[principal] = ln
	}
	if len(ln.flows) == 0 {
		ln.index, ln.served = len(l.lanes), 0
		l.lanes = append(l.lanes, ln)
	}
	f := &flow{client: c, lane: ln, start: ln.served, length: length}
	heap.Push(&ln.flows, f)
	l.stale = true
	return f
}

// drop takes a flow off the link.
func (l *link) drop(f *flow) {
	ln := f.lane
	heap.Remove(&ln.flows, f.index)
	if len(ln.flows) == 0 {
		last := l.lanes[len(l.lanes)-1]
		l.lanes[ln.index], last.index = last, ln.index
		l.lanes = l.lanes[:len(l.lanes)-1]
	}
	l.stale = true
}

// shorten lets a flow end after fewer bytes than it was to send.
func (l *link) shorten(f *flow, length int64) {
	f.length = length
	heap.Fix(&f.lane.flows, f.index)
	l.stale = true
}

// delivered is how many whole bytes of the flow have passed.
func (f *flow) delivered() int64 {
	return min(f.length, int64(f.lane.served-f.start+halfByte))
}

// left is what the flow still has to send.
func (f *flow) left() float64 { return float64(f.length) - (f.lane.served - f.start) }

// advance lets bytes flow up to an instant, which must not lie past next, and gives how many did.
func (l *link) advance(to clock.Mono) float64 {
	l.share()
	span := to.Sub(l.now).Seconds()
	moved := 0.0
	for _, ln := range l.lanes {
		each := ln.rate * span
		ln.served += each
		moved += each * float64(len(ln.flows))
	}
	l.now = to
	l.sent += moved
	return moved
}

// next is the instant at which the first flow is through.
func (l *link) next() (clock.Mono, bool) {
	if len(l.lanes) == 0 {
		return 0, false
	}
	l.share()
	soonest := math.Inf(1)
	for _, ln := range l.lanes {
		soonest = min(soonest, ln.flows[0].left()/ln.rate)
	}
	return l.now.Add(time.Duration(math.Ceil(max(0, soonest) * 1e9))), true
}

// through takes one finished flow off the link, or gives nil.
func (l *link) through() *flow {
	for _, ln := range l.lanes {
		if f := ln.flows[0]; f.left() < halfByte {
			l.drop(f)
			return f
		}
	}
	return nil
}

// share finds the level up to which the link fills every principal: those that cannot take their even part are given
// what they can, and the rest is split among the others, until nobody is left that takes less.
func (l *link) share() {
	if !l.stale {
		return
	}
	l.stale = false
	for _, ln := range l.lanes {
		ln.settled = false
	}
	left, open := l.rate, len(l.lanes)
	for found := l.peak > 0; found && open > 0; {
		found = false
		level := left / float64(open)
		for _, ln := range l.lanes {
			want := l.peak * float64(len(ln.flows))
			if ln.settled || want > level {
				continue
			}
			ln.settled, ln.rate, found = true, l.peak, true
			left -= want
			open--
		}
	}
	for _, ln := range l.lanes {
		if !ln.settled {
			ln.rate = max(left, 0) / float64(open) / float64(len(ln.flows))
		}
	}
}

// flows is a heap of the flows of a lane, the one that is through first on top.
type flows []*flow

func (h flows) Len() int { return len(h) }
func (h flows) Less(i, j int) bool {
	return h[i].start+float64(h[i].length) < h[j].start+float64(h[j].length)
}
func (h flows) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *flows) Push(x any) {
	f := x.(*flow)
	f.index = len(*h)
	*h = append(*h, f)
}
func (h *flows) Pop() any {
	old := *h
	f := old[len(old)-1]
	*h = old[:len(old)-1]
	return f
}
