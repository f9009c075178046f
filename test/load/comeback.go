package main

import (
	"context"
	"slices"
	"time"
)

// playComeback kills the server while clients of the SDK wait in it and starts it again: they come back when they were
// told to, each by itself, and nobody loses a place (D-2.12, D-8.1). Unlike restart it leaves all to the clients.
func playComeback(ctx context.Context, b *bench, s scenario) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	st, err := b.open(ctx, s)
	defer st.stop()
	if err != nil {
		return err
	}
	fetches := make([]*fetch, s.owners) // the clients that wait at the kill, and some that will be through by then
	for i := range fetches {
		fetches[i] = &fetch{key: st.world.keys[i], file: st.common()}
	}
	p, err := st.begin(ctx, arrivalsApart, fetches)
	if err != nil {
		return err
	}
	if err := until(ctx, &p.finished, 3*s.seats); err != nil {
		return err
	}
	killed := time.Now()
	st.srv.kill()
	if err := st.srv.start(ctx); err != nil {
		return err
	}
	back := time.Now()
	all := p.wait()
	left := slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.first.Before(killed) })
	failed, faults := st.failures(all)
	st.report(atLeast("waiting", float64(len(left)), float64(s.clients)))
	st.report(atLeast("finished", float64(len(all)-failed), float64(len(all))))
	st.report(atMost("errors", float64(failed), 0))
	passed, pairs := passedBy(left)
	// As many are offered a seat at once as there are seats, twice, and the first to come takes it (D-2.12).
	st.report(atMost("passed_by_later_ones", float64(passed), float64(2*s.seats)))
	b.say("%s: the server was away for %.1f s, the first of those that waited started %.1f s after the kill; %d retries for a server that was not there; %d of %d pairs started in the other order",
		s.name, back.Sub(killed).Seconds(), opening(left).Sub(killed).Seconds(), faults, pairs, len(left)*(len(left)-1)/2)
	return nil
}

// passedBy counts, for the one that fared worst, those that arrived later and started earlier; and all such pairs.
func passedBy(arrived []outcome) (most, pairs int) {
	for i, a := range arrived {
		n := 0
		for _, later := range arrived[i+1:] {
			if later.first.Before(a.first) {
				n++
			}
		}
		most, pairs = max(most, n), pairs+n
	}
	return most, pairs
}
