// Command queue measures the download machine against simple baselines in the same run: a map plus a binary heap for
// its operations, a sort of the whole queue for its tick. It prints one line a measure and fails when one is past its
// limit. Times are this thread's CPU time. The operations of the machine and of the map and heap take turns, a thousand
// at a time, and each turn is compared with the one before it, so that both meet the same neighbours on their machine,
// the same cold caches and the same collector; the median of these ratios counts.
package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

const (
	small, large = 65536, 1 << 20
	principals   = 10_000
	batch        = 20_000 // how many fewer wait than fit, at most
	turn         = 4000   // operations timed together
	turns        = 30
	served       = 500 // starts timed together: freeing so many seats at once is what takes the time
	rounds       = 9
)

func main() {
	runtime.LockOSThread()
	ok := true
	report := func(name string, value, limit float64) {
		good := value <= limit
		ok = ok && good
		fmt.Printf("measure=%s value=%.3g limit=%.3g ok=%v\n", name, value, limit, good)
	}
	other := newRival(large)
	lo, hi := measure(small, other), measure(large, other)
	for i, name := range operations {
		report("queue_"+name+"_1048576_vs_heap_arrive", hi.op[i].ratio(), 3)
		report("queue_"+name+"_growth_from_65536", hi.op[i].ratio()/lo.op[i].ratio(), 4)
	}
	report("queue_estimate_us", hi.op[3].time()/1e3, 5)
	report("queue_tick_65536_vs_sort", lo.tick.ratio(), 1.0/100)
	report("queue_tick_1048576_vs_sort", hi.tick.ratio(), 1.0/500)
	report("queue_bytes_per_session", hi.bytes, 200)
	fmt.Print("# ns at 1048576:")
	for i, name := range operations {
		fmt.Printf(" %s %.0f beside an arrival of %.0f,", name, hi.op[i].time(), median(hi.op[i].base))
	}
	fmt.Printf(" tick %.0f; at 65536: tick %.0f\n", hi.tick.time(), lo.tick.time())
	if !ok {
		os.Exit(1)
	}
}

var operations = [4]string{"arrive", "serve", "cancel", "place"}

type figures struct {
	op    [4]pairs
	tick  pairs // each beside a sort
	bytes float64
}

// pairs are turns of one operation, in ns, each beside a turn of the rival just before it: of arrivals, where nothing
// else is said.
type pairs struct{ own, base []float64 }

func (p *pairs) add(base, own float64) { p.own, p.base = append(p.own, own), append(p.base, base) }

func (p *pairs) time() float64 { return median(p.own) }

func (p *pairs) ratio() float64 {
	all := make([]float64, len(p.own))
	for i := range all {
		all[i] = p.own[i] / p.base[i]
	}
	return median(all)
}

func key(n uint64) (k session.Key) {
	binary.LittleEndian.PutUint64(k[:], n*0x9E3779B97F4A7C15)
	binary.LittleEndian.PutUint64(k[8:], n)
	return k
}

// cpu is this thread's CPU time, so that neighbours on a shared machine are not counted.
func cpu() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func timed(n int, f func()) float64 {
	began := cpu()
	f()
	return float64(cpu()-began) / float64(n)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// bench is a machine full of waiting sessions.
type bench struct {
	m    *session.Machine
	now  clock.Mono
	next uint64
	live []uint64
	rnd  *rand.Rand
}

// arrive is a new download: the request and the answer that tells it to wait.
func (b *bench) arrive() {
	k := key(b.next)
	b.m.Apply(b.now, session.Event{
		Kind: session.Request, Key: k, Principal: key(1<<40 + b.next*31%principals), Class: class.Class(b.next * 7 % 4),
		Identified: true, Size: 8 << 30, To: 8 << 30,
	})
	b.m.Answer(b.now, k)
	b.live = append(b.live, b.next)
	b.next++
}

func (b *bench) poll(n uint64) {
	k := key(n)
	b.m.Apply(b.now, session.Event{Kind: session.Request, Key: k, Size: 8 << 30, To: 8 << 30})
	b.m.Answer(b.now, k)
}

// flow keeps the sessions that have a seat from idling.
func (b *bench) flow() {
	for n := range uint64(16) {
		b.m.Apply(b.now, session.Event{Kind: session.Progress, Key: key(n)})
	}
}

// take removes a random live session from the list and gives its number.
func (b *bench) take() uint64 {
	i := b.rnd.IntN(len(b.live))
	n := b.live[i]
	b.live[i] = b.live[len(b.live)-1]
	b.live = b.live[:len(b.live)-1]
	return n
}

func fill(n, seats int) *bench {
	p := session.Default(16)
	p.MaxSessions, p.MaxPerPrincipal, p.LinkRate = 1<<20, 1<<20, 125<<20
	if seats > 16 {
		p.Sessions, p.PerPrincipal, p.Reserve = seats, seats, 0
	}
	m, err := session.New(p, 1)
	if err != nil {
		panic(err)
	}
	b := &bench{m: m, now: clock.Mono(time.Second), rnd: rand.New(rand.NewPCG(1, 2)), live: make([]uint64, 0, n)}
	for range n - batch {
		b.now += 1000
		b.arrive()
	}
	return b
}

func measure(n int, other *rival) (f figures) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := fill(n, 16)
	runtime.GC()
	runtime.ReadMemStats(&after)
	f.bytes = float64(after.HeapAlloc-before.HeapAlloc)/float64(n-batch) - 8*float64(n)/float64(n-batch) // less our own list
	for range turns {
		b.comeAndGo(&f, other)
	}
	b.tick(&f, newSorter(n))
	for range turns {
		b.places(&f, other)
	}
	b = fill(n, 4096) // seats enough to serve a batch at once
	b.serve(&f, other)
	return f
}

// comeAndGo measures a turn of arrivals and one of cancels of random sessions.
func (b *bench) comeAndGo(f *figures, other *rival) {
	f.op[0].add(other.turn(), timed(turn, func() {
		for range turn {
			b.now += 1000
			b.arrive()
		}
	}))
	gone := make([]session.Key, turn)
	for i := range gone {
		gone[i] = key(b.take())
	}
	f.op[2].add(other.turn(), timed(turn, func() {
		for _, k := range gone {
			b.m.Apply(b.now, session.Event{Kind: session.Cancel, Key: k})
		}
	}))
}

// tick measures ticks of a queue that has been polled for six minutes, every session once in five, as told: what comes
// due is then moved or dropped. The first estimate after a tick makes the plan, so it counts with the tick. The sorts
// come between the ticks, one for every ten of them; ten in a row keep the caches as ticks alone would have them.
func (b *bench) tick(f *figures, rival sorter) {
	const warm, row = 720, 10
	var ticks []float64
	b.now = b.now.Add(session.TickEvery)
	b.m.Tick(b.now)
	for _, n := range b.live { // newcomers ask again after two seconds
		b.poll(n)
	}
	base := 0.0
	for i := range warm + row*rounds {
		if i >= warm && i%row == 0 {
			base, ticks = rival.sort(), ticks[:0]
		}
		b.flow()
		for j := i % 600; j < len(b.live); j += 600 {
			b.poll(b.live[j])
		}
		b.now = b.now.Add(session.TickEvery)
		k := key(b.live[i])
		t := timed(1, func() { b.m.Tick(b.now); b.m.Estimate(b.now, k) })
		if ticks = append(ticks, t); i >= warm && len(ticks) == row {
			f.tick.add(base, median(ticks))
		}
	}
	if c := b.m.Counts(); c.Classes[0].Waiting+c.Classes[1].Waiting+c.Classes[2].Waiting+c.Classes[3].Waiting < len(b.live)/2 {
		panic("the queue emptied while its ticks were measured")
	}
}

// places measures a turn of estimates of random sessions from the plan of the last tick.
func (b *bench) places(f *figures, other *rival) {
	keys := make([]session.Key, turn)
	for i := range keys {
		keys[i] = key(b.live[b.rnd.IntN(len(b.live))])
	}
	known := 0
	f.op[3].add(other.turn(), timed(turn, func() {
		for _, k := range keys {
			if e, _ := b.m.Estimate(b.now, k); e.Known {
				known++
			}
		}
	}))
	if known < turn/2 {
		panic("estimates are not known")
	}
}

// serve measures a start: the poll of a called session that takes a free seat.
func (b *bench) serve(f *figures, other *rival) {
	seated := b.live[:4096]
	for range rounds {
		for _, n := range seated[:served] {
			b.m.Apply(b.now, session.Event{Kind: session.Cancel, Key: key(n)})
		}
		b.now = b.now.Add(session.TickEvery)
		b.m.Tick(b.now)
		called := b.called(served)
		f.op[1].add(other.turn(), timed(len(called), func() {
			for _, n := range called {
				b.m.Apply(b.now, session.Event{Kind: session.Request, Key: key(n), Size: 8 << 30, To: 8 << 30})
			}
		}))
		if !b.m.Active(key(called[len(called)-1])) {
			panic("a called session did not start")
		}
		seated = append(called, seated[served:]...)
	}
}

// called finds sessions that may start now.
func (b *bench) called(most int) (all []uint64) {
	for _, n := range b.live {
		if e, ok := b.m.Estimate(b.now, key(n)); ok && e.Called {
			if all = append(all, n); len(all) == most {
				break
			}
		}
	}
	return all
}
