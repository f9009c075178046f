package schedules

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Curve is how many slots of a pool the schedules on it take at once, as their plans declare it: nothing waits in it, so it
// is what would be asked for and not what would run.
type Curve struct {
	Pool    string
	From    time.Time
	Step    time.Duration // of a bucket
	Buckets []Bucket
	Peaks   []Peak   // the highest minutes, at least an hour apart, highest first
	Spreads []Effect // the highest minute under other spreads
	Left    int      // schedules on the pool beyond the bound, which were not counted
}

// Bucket is one step of the curve.
type Bucket struct {
	At   time.Time
	Mean float64 // slots
	Most int64   // slots, in the highest minute
}

// Peak is a minute that asks for many slots.
type Peak struct {
	At     time.Time
	Slots  int64
	Own    []Part // of the tenant, most slots first; ten at most
	Others int64  // slots of other tenants, who are not named
}

// Part is what one schedule asks for in a peak.
type Part struct {
	Name  string
	Slots int64
}

// Effect is the highest minute of the curve if a spread were declared.
type Effect struct {
	Spread   time.Duration
	Alone    int64 // by this schedule only
	Together int64 // by all of the tenant's that are part of the highest peak
}

// Bounds of a preview.
const (
	curveMost  = 5000 // schedules
	firesMost  = 500_000
	peaksMost  = 5
	partsMost  = 10
	peaksApart = time.Hour
)

// spreads are those whose effect is shown.
func spreads() []time.Duration {
	return []time.Duration{0, 5 * time.Minute, 15 * time.Minute, time.Hour}
}

// Preview answers the curve of the plan's pool over the next 24 hours or, with week, 7 days, as if the plan were stored
// under the name; nothing is stored. Refusals are those of Put. Other tenants' schedules count, and are not named.
func (s *Service) Preview(ctx context.Context, actor identity.Principal, tenant, name string, plan Plan, week bool) (Curve, error) {
	next, _, was, err := s.changed(ctx, actor, tenant, name, plan)
	if err != nil {
		return Curve{}, err
	}
	if !s.previewing.TryLock() {
		return Curve{}, fault.Later(fault.Busy, "", 2*time.Second, "another preview is being computed; ask again in a few seconds")
	}
	defer s.previewing.Unlock()
	all := []Schedule{next}
	left, after := 0, ""
	for {
		page, err := s.store.SchedulesOnPool(ctx, next.Shape.Pool, after, 1000)
		if err != nil {
			return Curve{}, err
		}
		for _, d := range page {
			after = d.ID
			switch {
			case d.ID == was.ID:
			case len(all) >= curveMost:
				left++
			default:
				all = append(all, d)
			}
		}
		if len(page) < 1000 {
			break
		}
	}
	c := curve(ctx, all, s.now(), week)
	c.Left += left
	return c, ctx.Err()
}

// curve counts the slots of schedules from an instant on; the first is the one that is looked at.
func curve(ctx context.Context, all []Schedule, from time.Time, week bool) Curve {
	from = from.Truncate(time.Minute)
	c := Curve{Pool: all[0].Shape.Pool, From: from, Step: 5 * time.Minute}
	minutes := 24 * 60
	if week {
		minutes, c.Step = 7*minutes, time.Hour
	}
	sum := newMinutes(minutes)
	times, fires := make([][]int64, len(all)), 0
	for i, d := range all {
		if ctx.Err() != nil {
			return c
		}
		if fires >= firesMost {
			c.Left++
			continue
		}
		times[i] = d.times(from, minutes)
		fires += len(times[i])
		sum.add(d, times[i], d.place(), 1)
	}
	slots := sum.slots()
	c.Buckets = buckets(slots, from, c.Step)
	c.Peaks = peaks(slots, all, times, from)
	if len(c.Peaks) > 0 {
		c.Spreads = effects(sum, all, times, from, c.Peaks[0].At)
	}
	return c
}

// times are the instants, in seconds from one on, whose Runs can reach into the curve, whatever the spread.
func (s Schedule) times(from time.Time, minutes int) (out []int64) {
	rule, err := ParseRule(s.Plan.Rule, s.Plan.Zone)
	if err != nil {
		return nil
	}
	for at := range rule.Between(from.Add(-s.Shape.Duration-maxSpread), from.Add(time.Duration(minutes)*time.Minute)) {
		out = append(out, at.Unix()-from.Unix())
	}
	return out
}

// minutes holds, for each minute, by how many slots it differs from the one before: a Run costs two additions.
type minutes []int64

func newMinutes(n int) minutes { return make(minutes, n+1) }

// add counts the Runs of a schedule at its place in a spread, sign times.
func (m minutes) add(d Schedule, times []int64, place time.Duration, sign int64) {
	last := len(m) - 1
	for begin, end := range d.spans(times, place) {
		if end > 0 && begin < last {
			m[max(begin, 0)] += sign * d.Shape.Slots
			m[min(end, last)] -= sign * d.Shape.Slots
		}
	}
}

// spans walks the minutes that each Run is in: from begin up to and without end. Where Runs may not overlap, the next
// one's begin is the end of one.
func (s Schedule) spans(times []int64, place time.Duration) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		takes, moved := int64(max(s.Shape.Duration, time.Second)/time.Second), int64(place/time.Second)
		for i, at := range times {
			at += moved
			end := minuteOf(at + takes + 59)
			if s.Plan.Overlap != Allow && i+1 < len(times) {
				end = min(end, minuteOf(times[i+1]+moved))
			}
			if !yield(minuteOf(at), end) {
				return
			}
		}
	}
}

// minuteOf is the minute that a second is in; seconds before the first count down.
func minuteOf(second int64) int {
	if second < 0 {
		return int((second - 59) / 60)
	}
	return int(second / 60)
}

// slots are the slots of each minute.
func (m minutes) slots() []int64 {
	out, now := make([]int64, len(m)-1), int64(0)
	for i := range out {
		now += m[i]
		out[i] = now
	}
	return out
}

func buckets(slots []int64, from time.Time, step time.Duration) (out []Bucket) {
	n := int(step / time.Minute)
	for i := 0; i < len(slots); i += n {
		part := slots[i:min(i+n, len(slots))]
		b := Bucket{At: from.Add(time.Duration(i) * time.Minute), Most: slices.Max(part)}
		for _, v := range part {
			b.Mean += float64(v) / float64(len(part))
		}
		out = append(out, b)
	}
	return out
}

// peaks finds the highest minutes and who makes them.
func peaks(slots []int64, all []Schedule, times [][]int64, from time.Time) (out []Peak) {
	order := make([]int, len(slots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slots[b], slots[a]) })
	for _, minute := range order {
		at := from.Add(time.Duration(minute) * time.Minute)
		if slots[minute] == 0 || len(out) == peaksMost {
			break
		}
		if slices.ContainsFunc(out, func(p Peak) bool { return at.Sub(p.At).Abs() < peaksApart }) {
			continue
		}
		p := Peak{At: at, Slots: slots[minute]}
		for i, d := range all {
			n := d.in(minute, times[i])
			switch {
			case n == 0:
			case d.Tenant == all[0].Tenant:
				p.Own = append(p.Own, Part{d.Name, n})
			default:
				p.Others += n
			}
		}
		slices.SortStableFunc(p.Own, func(a, b Part) int { return cmp.Compare(b.Slots, a.Slots) })
		p.Own = p.Own[:min(len(p.Own), partsMost)]
		out = append(out, p)
	}
	return out
}

// in is how many slots the schedule asks for in a minute.
func (s Schedule) in(minute int, times []int64) (slots int64) {
	for begin, end := range s.spans(times, s.place()) {
		if begin <= minute && minute < end {
			slots += s.Shape.Slots
		}
	}
	return slots
}

// effects moves the schedules of the highest peak, the first alone and then all of its tenant's, to their places in other
// spreads.
func effects(sum minutes, all []Schedule, times [][]int64, from, peak time.Time) (out []Effect) {
	minute := int(peak.Sub(from) / time.Minute)
	for _, spread := range spreads() {
		e := Effect{Spread: spread}
		moved := slices.Clone(sum)
		for i, d := range all {
			if i > 0 && (d.Tenant != all[0].Tenant || d.in(minute, times[i]) == 0) {
				continue
			}
			moved.add(d, times[i], d.place(), -1)
			moved.add(d, times[i], Place(d.Tenant, d.Name, spread), 1)
			if i == 0 {
				e.Alone = slices.Max(moved.slots())
			}
		}
		e.Together = slices.Max(moved.slots())
		out = append(out, e)
	}
	return out
}
