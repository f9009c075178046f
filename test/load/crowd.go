package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// playCrowd lets one principal come with many downloads beside others that have one each, all at the same time: to
// the others it must be the same whether it brings ten or three hundred, as principals take turns (D-3.1).
func playCrowd(ctx context.Context, b *bench, s scenario) error {
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
	greedy, err := owner(ctx, st.world.operator, "greedy", s.class(0))
	if err != nil {
		return err
	}
	few, err := st.beside(ctx, 10, greedy, warm, key, true)
	if err != nil {
		return err
	}
	many, err := st.beside(ctx, 300, greedy, warm, key, false) // last: it leaves a queue behind
	if err != nil {
		return err
	}
	failed, _ := st.failures(slices.Concat(few.ours, many.ours))
	st.report(atLeast("finished", float64(2*s.clients-failed), float64(2*s.clients)))
	failed, faults := st.failures(slices.Concat(few.all, many.all))
	st.report(atMost("errors", float64(failed+faults), 0))
	st.judgeCrowd(few.waits, many.waits)
	return nil
}

// crowd is what came of one run.
type crowd struct {
	waits []time.Duration // of the owners
	ours  []outcome       // of the owners
	all   []outcome       // the greedy one's too
}

// beside downloads one file for each owner while the greedy principal wants so many, and tells how long each
// owner's download waited. What the greedy one has not got by then is given up, unless all are to come through.
func (st *stage) beside(ctx context.Context, greed int, greedy string, warm stored, key string, drain bool) (crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fetches, ours := make([]*fetch, st.s.clients+greed), []*fetch{}
	var ended atomic.Int64
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(len(fetches)) {
		fetches[i] = &fetch{key: greedy, file: st.common()}
		if n < st.s.clients {
			fetches[i].key, fetches[i].ended = st.world.keys[len(ours)], &ended
			ours = append(ours, fetches[i])
		}
	}
	p, err := st.gathered(ctx, warm, key, 2*time.Millisecond, fetches)
	if err == nil && !drain {
		err = until(ctx, &ended, len(ours))
		cancel()
	}
	if err != nil {
		return crowd{}, err
	}
	all := p.wait()
	c, origin := crowd{all: all}, opening(all)
	for _, f := range ours {
		c.ours = append(c.ours, f.outcome)
		c.waits = append(c.waits, f.first.Sub(origin)) // what the order decides on begins when the first seat comes free
	}
	return c, nil
}

// judgeCrowd compares the waits. One of them alone is as exact as the moment at which a client takes a seat that came
// free, so each is allowed one turn of the seats more; their mean is not.
func (st *stage) judgeCrowd(few, many []time.Duration) {
	turn, worst := st.turn().Seconds(), 0.0
	var sum, longest [2]float64
	for i := range few {
		sum[0] += few[i].Seconds()
		sum[1] += many[i].Seconds()
		longest[0], longest[1] = max(longest[0], few[i].Seconds()), max(longest[1], many[i].Seconds())
		worst = max(worst, many[i].Seconds()-1.05*few[i].Seconds())
	}
	st.report(atMost("mean_wait_of_beside_ten", sum[1]/sum[0], 1.05))
	st.report(atMost("longest_wait_of_beside_ten", longest[1]/longest[0], 1.05+turn/longest[0]))
	st.report(atMost("each_later_in_turns", worst/turn, 1))
	n := float64(len(few))
	st.b.say("%s: beside ten: mean %.2f s, longest %.2f s; beside 300: mean %.2f s, longest %.2f s; a turn of the seats is %.2f s",
		st.s.name, sum[0]/n, longest[0], sum[1]/n, longest[1], turn)
}
