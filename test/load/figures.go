package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// measure is one promise and what a run came to.
type measure struct {
	name         string
	value, limit float64
	ok           bool
}

func (m measure) String() string {
	return fmt.Sprintf("measure=load.%s value=%.4g limit=%.4g ok=%t", m.name, m.value, m.limit, m.ok)
}

func atMost(name string, value, limit float64) measure {
	return measure{name, value, limit, value <= limit}
}

func atLeast(name string, value, limit float64) measure {
	return measure{name, value, limit, value >= limit}
}

// times are the instants of a run that its figures are made of.
type times struct {
	began     time.Time
	firstDone time.Duration // of all completions, from began
	meanDone  time.Duration
	lastStart time.Time // until then somebody waited
}

func clocked(began time.Time, all []outcome) (t times) {
	t.began = began
	var sum time.Duration
	n := 0
	for _, o := range all {
		if o.first.After(t.lastStart) {
			t.lastStart = o.first
		}
		if o.err != nil {
			continue
		}
		took := o.done.Sub(began)
		if n == 0 || took < t.firstDone {
			t.firstDone = took
		}
		sum += took
		n++
	}
	if n > 0 {
		t.meanDone = sum / time.Duration(n)
	}
	return t
}

// promises is how the first intervals told turned out.
type promises struct {
	told, kept int
	widest     float64 // width of the widest, as a part of what it may be
	early      int     // started before the interval
	late       int     // started after it
}

// scored looks at every session that was told a start. An interval may be as wide as one turn of the seats, or a
// fifth of the wait when that is more.
func scored(all []outcome, turn time.Duration) (p promises) {
	for _, o := range all {
		if o.promise == nil || o.first.IsZero() {
			continue
		}
		p.told++
		may := max(turn, o.promise.StartsAt.Sub(o.told)/5)
		p.widest = max(p.widest, float64(o.promise.Latest.Sub(o.promise.Earliest))/float64(may))
		switch {
		case o.first.Before(o.promise.Earliest):
			p.early++
		case o.first.After(o.promise.Latest):
			p.late++
		default:
			p.kept++
		}
	}
	return p
}

// judge reports a fleet's figures.
func judge(b *bench, s scenario, began time.Time, all []outcome, w *watch) error {
	failed, faults := 0, 0
	for _, o := range all {
		faults += o.faults
		if o.err != nil {
			if failed++; failed <= 5 {
				b.say("%s: a client failed: %v", s.name, o.err)
			}
		}
	}
	report := func(m measure) {
		m.name = s.name + "." + m.name
		b.report(m)
	}
	report(atLeast("finished", float64(len(all)-failed), float64(len(all))))
	report(atMost("errors", float64(failed+faults), 0))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		b.say("%s: the watch failed at least once: %v", s.name, w.failed)
	}
	t := clocked(began, all)
	waited := t.lastStart.Sub(began).Seconds()
	sent, wire, err := between(w.samples, began, t.lastStart)
	if err != nil {
		return err
	}
	rate := sent / waited
	if rate <= 0 || waited <= 0 {
		return fmt.Errorf("no rate was measured")
	}
	report(atMost("first_finish_of_turn", t.firstDone.Seconds()/s.turn(rate).Seconds(), 1.2))
	report(atMost("mean_of_sharing", t.meanDone.Seconds()*rate/(float64(s.clients)*float64(s.size)), 0.55))
	report(atLeast("busy", wire/(float64(s.rate)*waited), 0.95))
	p := scored(all, s.turn(rate))
	report(atLeast("starts_as_told", float64(p.kept)/float64(max(p.told, 1)), asTold(p.told)))
	report(atMost("interval_of_allowed", p.widest, 1))
	report(atMost("samples_over_seats", float64(w.over), 0))
	b.say("%s: %.2f MB/s of content for %.1f s while anyone waited; first finish %.1f s, mean %.1f s; %d of %d told a start, %d early, %d late; least busy 2 s: %.2f; %d samples",
		s.name, rate/1e6, waited, t.firstDone.Seconds(), t.meanDone.Seconds(), p.told, len(all), p.early, p.late,
		leastBusy(w.samples, s, began, t.lastStart), w.looked)
	b.say("%s: %s", s.name, spread(all))
	return nil
}

// leastBusy is the emptiest two seconds of the link while anyone waited, as a part of its rate.
func leastBusy(samples []sample, s scenario, from, to time.Time) float64 {
	const window = 2 * time.Second
	least := 1.0
	for t := from; t.Add(window).Before(to); t = t.Add(window / 4) {
		if _, wire, err := between(samples, t, t.Add(window)); err == nil {
			least = min(least, wire/window.Seconds()/float64(s.rate))
		}
	}
	return least
}

// spread says how far the starts were from the points told.
func spread(all []outcome) string {
	var errs []time.Duration
	for _, o := range all {
		if o.promise != nil && !o.first.IsZero() {
			errs = append(errs, o.first.Sub(o.promise.StartsAt))
		}
	}
	if len(errs) == 0 {
		return "nobody was told a start"
	}
	slices.Sort(errs)
	q := func(part float64) time.Duration {
		return errs[int(part*float64(len(errs)-1))].Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("start minus the point told: 5%% %s, median %s, 95%% %s", q(0.05), q(0.5), q(0.95))
}

// asTold is the part of the starts that must lie in the first interval told: nine in ten. Of the forty-odd of a small copy
// chance alone takes more than one in ten now and then (their first figures hang on the first two seconds of a link that
// nobody has measured yet), so two standard deviations less are asked of few.
func asTold(told int) float64 {
	if told >= 100 {
		return 0.9
	}
	return 0.9 - 2*math.Sqrt(0.9*0.1/float64(max(told, 1)))
}
