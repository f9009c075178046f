package main

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/api"
)

// playSwitch changes the strategy under a full queue, three times and back: whoever waits goes over to the other
// admission, whoever has a seat keeps it, and nobody is cut (D-3, D-9.3).
func playSwitch(ctx context.Context, b *bench, s scenario) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	st, err := b.open(ctx, s)
	defer st.stop()
	if err != nil {
		return err
	}
	fetches := make([]*fetch, s.clients)
	for i := range fetches {
		fetches[i] = &fetch{key: st.world.keys[i%len(st.world.keys)], file: st.common()}
	}
	p, err := st.begin(ctx, 0, fetches)
	if err != nil {
		return err
	}
	whole := float64(s.clients) * float64(s.size) / float64(s.rate) // seconds
	switched, during := 0, 0
	for _, strategy := range []string{api.StrategySmallestFirst, api.StrategyShared, api.StrategyOrdered} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(whole / 5 * float64(time.Second))):
		}
		if err := st.strategy(ctx, strategy); err != nil {
			return err
		}
		switched++
		if n := int(p.finished.Load()); n < s.clients {
			during++
			b.say("%s: %s from %d of %d finished on", s.name, strategy, n, s.clients)
		}
	}
	all := p.wait()
	st.flawless(all)
	st.report(atLeast("switched_in_the_middle", float64(min(switched, during)), 3))
	t := clocked(opening(all), all)
	b.say("%s: the last started after %.1f s, the link alone needs %.1f s for all", s.name, t.lastStart.Sub(t.began).Seconds(), whole)
	return nil
}
