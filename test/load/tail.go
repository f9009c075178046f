package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// kinds is how many different sizes a heavy tail has here.
const kinds = 12

// heavyTail is sizes with the mean given whose Gini coefficient is a little over a half: quantiles of a Pareto
// distribution, each size as often as any other. Large and small are spread evenly, and the second half is the first
// one backwards, so that to serve them in this order takes as long, on the mean, as in all orders.
func heavyTail(n int, mean int64) []int64 {
	const shape = 1.05
	var quantile [kinds]float64
	sum := 0.0
	for i := range quantile {
		quantile[i] = math.Pow(1-(float64(i)+0.5)/kinds, -1/shape)
		sum += quantile[i]
	}
	place := make([]int, n/2)
	for i := range place {
		place[i] = i
	}
	slices.SortFunc(place, func(a, b int) int { // as the reversed bits of the number: far from its neighbours
		return cmp.Compare(bits.Reverse32(uint32(a+1)), bits.Reverse32(uint32(b+1)))
	})
	sizes := make([]int64, n/2)
	for rank, i := range place {
		sizes[i] = int64(quantile[rank*kinds/len(place)] / sum * kinds * float64(mean))
	}
	back := slices.Clone(sizes)
	slices.Reverse(back)
	return append(sizes, back...)
}

// gini is how unlike the sizes are: 0 when all are the same.
func gini(sizes []int64) float64 {
	sorted, sum, ranked := slices.Clone(sizes), 0.0, 0.0
	slices.Sort(sorted)
	for i, s := range sorted {
		sum += float64(s)
		ranked += float64(i+1) * float64(s)
	}
	n := float64(len(sorted))
	return (2*ranked/sum - n - 1) / n
}

// playTail downloads files of very different sizes by both orders: with a Gini coefficient G, smallest-first comes to
// 1-G of the mean completion of first come, first served (D-3.2). That is so when files go one after the other: with
// ideal hand-over one seat comes to 1.02 (1-G) for 48 files, but two to 1.09 and three to 1.15, as files that share the
// link end together. And the smallest takes the link a quarter of a second: of many that are over within one tick the
// queue cannot have the next at the door.
func playTail(ctx context.Context, b *bench, s scenario) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.patience())
	defer cancel()
	st, err := b.open(ctx, s)
	defer st.stop()
	if err != nil {
		return err
	}
	warm, key, err := st.warm(ctx)
	if err != nil {
		return err
	}
	sizes := heavyTail(s.clients, s.size)
	files := map[int64]stored{}
	for _, size := range sizes {
		if _, have := files[size]; have {
			continue
		}
		if files[size], err = st.srv.put(ctx, b, st.world.operator, fmt.Sprintf("tail-%d.bin", size), size); err != nil {
			return err
		}
	}
	var mean [2]float64
	var both []outcome
	for i, strategy := range []string{api.StrategyOrdered, api.StrategySmallestFirst} {
		if err := st.strategy(ctx, strategy); err != nil {
			return err
		}
		fetches := make([]*fetch, len(sizes))
		for j, size := range sizes {
			fetches[j] = &fetch{key: st.world.keys[j%len(st.world.keys)], file: files[size]}
		}
		p, err := st.gathered(ctx, warm, key, 5*time.Millisecond, fetches)
		if err != nil {
			return err
		}
		all := p.wait()
		t := clocked(opening(all), all)
		mean[i] = t.meanDone.Seconds()
		both = append(both, all...)
		b.say("%s: %s: mean completion %.2f s after the first start, the last start after %.1f s", s.name, strategy, mean[i], t.lastStart.Sub(t.began).Seconds())
		b.say("%s: %s: sizes in the order of their starts, MB:%s", s.name, strategy, started(fetches))
	}
	g := gini(sizes)
	st.flawless(both)
	st.report(atLeast("gini", g, 0.5))
	st.report(atMost("smallest_first_of_ordered", mean[1]/mean[0], 1.1*(1-g)))
	return nil
}

// started lists the sizes in the order of their starts.
func started(fetches []*fetch) string {
	order := slices.Clone(fetches)
	slices.SortFunc(order, func(a, b *fetch) int { return a.first.Compare(b.first) })
	var out strings.Builder
	for _, f := range order {
		fmt.Fprintf(&out, " %.0f", float64(f.file.size)/1e6)
	}
	return out.String()
}
