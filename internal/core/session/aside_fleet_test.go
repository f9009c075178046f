package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// slowFleet is a fleet on a scarce link, a part of it slow readers, with the link as a fluid: seats share it equally up
// to what each reader takes, those aside share what is left.
type slowFleet struct {
	m       *Machine
	now     clock.Mono
	link    float64 // bytes per second
	all     []*reader
	byKey   map[Key]*reader
	waited  time.Duration // time with anybody waiting
	carried float64       // bytes meanwhile
}

type reader struct {
	ask     Event
	slow    bool
	takes   float64 // bytes per second at most
	left    float64
	arrives clock.Mono
	reads   bool
	done    clock.Mono
}

const fleetStep = 250 * time.Millisecond

func newSlowFleet(t *testing.T, seats, clients int, slowShare float64, minRate int64) *slowFleet {
	const link = 100e6
	p := Default(seats)
	p.LinkRate, p.MinRate, p.Preempt, p.Aging = link, minRate, false, 0
	m, err := New(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &slowFleet{m: m, now: clock.Mono(time.Second), link: link, byKey: map[Key]*reader{}}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range clients {
		size := 200e6 + r.Int64N(400e6)
		c := &reader{takes: 3 * link / float64(seats), left: float64(size), arrives: f.now.Add(time.Duration(r.Int64N(int64(time.Minute))))}
		if c.slow = r.Float64() < slowShare; c.slow {
			c.takes = link / float64(seats) / 50
		}
		c.ask = Event{Kind: Request, Key: key(uint64(i + 1)), Principal: key(uint64(10_000 + i)), Class: class.Release, Size: size, To: size}
		f.all, f.byKey[c.ask.Key] = append(f.all, c), c
	}
	slices.SortFunc(f.all, func(a, b *reader) int { return int(a.arrives - b.arrives) })
	return f
}

// run plays the fleet until everybody is through and gives how busy the link was while anybody waited.
func (f *slowFleet) run(t *testing.T) (busy float64) {
	came, through := 0, 0
	for ; through < len(f.all); f.now = f.now.Add(fleetStep) {
		if f.now > clock.Mono(100*time.Hour) {
			t.Fatalf("%d of %d are through after four days", through, len(f.all))
		}
		for ; came < len(f.all) && f.all[came].arrives <= f.now; came++ {
			f.request(f.all[came])
		}
		if f.now%clock.Mono(TickEvery) == 0 {
			effects, _ := f.m.Tick(f.now)
			f.take(slices.Clone(effects))
		}
		through += f.flow()
	}
	return f.carried / (f.link * f.waited.Seconds())
}

func (f *slowFleet) request(c *reader) {
	effects := slices.Clone(f.m.Apply(f.now, c.ask))
	for _, e := range effects {
		if e.Key == c.ask.Key && e.Kind == Serve {
			c.reads = true
		}
	}
	if !c.reads {
		f.m.Apply(f.now, Event{Kind: Hold, Key: c.ask.Key})
	}
	f.take(effects)
}

func (f *slowFleet) take(effects []Effect) {
	for _, e := range effects {
		if e.Kind == Seated {
			f.m.Apply(f.now, Event{Kind: Unhold, Key: e.Key})
			f.request(f.byKey[e.Key])
		}
	}
}

// flow carries one step's bytes and says how many readers are through with it.
func (f *slowFleet) flow() (through int) {
	waiting := f.m.queue.Len() > 0
	seated, aside := f.readers(f.m.running), f.readers(f.m.asides)
	used := f.share(seated, f.link)
	used += f.share(aside, max(f.link-used, 16<<10))
	if waiting {
		f.waited += fleetStep
		f.carried += used * fleetStep.Seconds()
	}
	for _, c := range append(seated, aside...) {
		if c.left > 0 {
			continue
		}
		c.done, c.reads = f.now, false
		through++
		f.take(slices.Clone(f.m.Apply(f.now, Event{Kind: Finish, Key: c.ask.Key, To: c.ask.Size})))
	}
	return through
}

func (f *slowFleet) readers(handles []uint32) (out []*reader) {
	for _, h := range handles {
		if c := f.byKey[f.m.records.at(h).key]; c.reads {
			out = append(out, c)
		}
	}
	return out
}

// share splits a rate equally up to what each takes, tells the machine, and gives what was used of it.
func (f *slowFleet) share(readers []*reader, rate float64) (used float64) {
	readers = slices.Clone(readers)
	slices.SortStableFunc(readers, func(a, b *reader) int { return int(a.takes - b.takes) })
	for i, c := range readers {
		part := (rate - used) / float64(len(readers)-i)
		e := Event{Kind: Progress, Key: c.ask.Key}
		if part < c.takes {
			e.Paced = fleetStep // it would take more
		}
		got := min(part, c.takes)
		e.Bytes = int64(min(got*fleetStep.Seconds(), c.left) + 0.5)
		used += got
		c.left = max(0, c.left-got*fleetStep.Seconds())
		f.take(slices.Clone(f.m.Apply(f.now, e)))
	}
	return used
}

// meanDone is when the quick ones are through on average.
func (f *slowFleet) meanDone() time.Duration {
	sum, n := time.Duration(0), 0
	for _, c := range f.all {
		if !c.slow {
			sum += c.done.Sub(c.arrives)
			n++
		}
	}
	return sum / time.Duration(n)
}

// One in ten reads at a fiftieth of a seat's part. With a minimum rate the link stays full while anybody waits; without
// one the slow gather in the seats until they have all of them (minimum rate).
func TestMinimumRateKeepsTheLinkBusy(t *testing.T) {
	for _, seats := range []int{4, 16} {
		part := int64(100e6) / int64(seats)
		on, off := newSlowFleet(t, seats, 400, 0.1, part/10), newSlowFleet(t, seats, 400, 0.1, 0)
		with, without := on.run(t), off.run(t)
		t.Logf("%d seats: busy %.1f %% and quick ones through after %s on average; without a minimum rate %.1f %% and %s",
			seats, 100*with, on.meanDone().Round(time.Second), 100*without, off.meanDone().Round(time.Second))
		if with < 0.95 || without > 0.5 {
			t.Errorf("%d seats: the link is busy for %.3f of the time with a minimum rate, %.3f without", seats, with, without)
		}
	}
}
