// Command queue measures the download machine against simple baselines in the same run: a map plus a binary heap for
// its operations, a sort of the whole queue for its tick. It prints one line a measure and fails when one is past its
// limit. Times are this thread's CPU time, medians of five.
package main

import (
	"container/heap"
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
	batch        = 20_000
	rounds       = 5
)

func main() {
	runtime.LockOSThread()
	ok := true
	report := func(name string, value, limit float64) {
		good := value <= limit
		ok = ok && good
		fmt.Printf("measure=%s value=%.3g limit=%.3g ok=%v\n", name, value, limit, good)
	}
	base := baselineArrive(large)
	lo, hi := measure(small), measure(large)
	for i, name := range operations {
		report("queue_"+name+"_1048576_vs_heap_arrive", hi.op[i]/base, 3)
		report("queue_"+name+"_growth_from_65536", hi.op[i]/lo.op[i], 4)
	}
	report("queue_estimate_us", hi.op[3]/1e3, 5)
	report("queue_tick_65536_vs_sort", lo.tick/sortTime(small), 1.0/100)
	report("queue_tick_1048576_vs_sort", hi.tick/sortTime(large), 1.0/500)
	report("queue_bytes_per_session", hi.bytes, 200)
	fmt.Printf("# heap arrive %.0f ns; machine at 1048576: arrive %.0f serve %.0f cancel %.0f place %.0f ns, tick %.1f us; at 65536: tick %.1f us\n",
		base, hi.op[0], hi.op[1], hi.op[2], hi.op[3], hi.tick/1e3, lo.tick/1e3)
	if !ok {
		os.Exit(1)
	}
}

var operations = [4]string{"arrive", "serve", "cancel", "place"}

type figures struct {
	op    [4]float64 // ns
	tick  float64    // ns
	bytes float64
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
	slices.Sort(v)
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

func measure(n int) (f figures) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := fill(n, 16)
	runtime.GC()
	runtime.ReadMemStats(&after)
	f.bytes = float64(after.HeapAlloc-before.HeapAlloc)/float64(n-batch) - 8*float64(n)/float64(n-batch) // less our own list
	var arrive, cancel []float64
	for range rounds {
		arrive = append(arrive, timed(batch, func() {
			for range batch {
				b.now += 1000
				b.arrive()
			}
		}))
		gone := make([]uint64, batch)
		for i := range gone {
			gone[i] = b.take()
		}
		cancel = append(cancel, timed(batch, func() {
			for _, g := range gone {
				b.m.Apply(b.now, session.Event{Kind: session.Cancel, Key: key(g)})
			}
		}))
	}
	f.op[0], f.op[2] = median(arrive), median(cancel)
	b.tick(&f)
	b.places(&f)
	b = fill(n, 4096) // seats enough to serve a batch at once
	b.serve(&f)
	return f
}

// tick measures ticks of a queue that has been polled for six minutes, every session once in five, as told: what comes
// due is then moved or dropped. The first estimate after a tick makes the plan, so it counts with the tick.
func (b *bench) tick(f *figures) {
	const warm, counted = 720, 60
	var ticks []float64
	b.now = b.now.Add(session.TickEvery)
	b.m.Tick(b.now)
	for _, n := range b.live { // newcomers ask again after two seconds
		b.poll(n)
	}
	for i := range warm + counted {
		b.flow()
		for j := i % 600; j < len(b.live); j += 600 {
			b.poll(b.live[j])
		}
		b.now = b.now.Add(session.TickEvery)
		k := key(b.live[i])
		t := timed(1, func() { b.m.Tick(b.now); b.m.Estimate(b.now, k) })
		if i >= warm {
			ticks = append(ticks, t)
		}
	}
	if c := b.m.Counts(); c.Classes[0].Waiting+c.Classes[1].Waiting+c.Classes[2].Waiting+c.Classes[3].Waiting < len(b.live)/2 {
		panic("the queue emptied while its ticks were measured")
	}
	f.tick = median(ticks)
}

// places measures the estimate of random sessions from the plan of the last tick.
func (b *bench) places(f *figures) {
	var v []float64
	known := 0
	keys := make([]session.Key, batch)
	for range rounds {
		for i := range keys {
			keys[i] = key(b.live[b.rnd.IntN(len(b.live))])
		}
		v = append(v, timed(batch, func() {
			for _, k := range keys {
				if e, _ := b.m.Estimate(b.now, k); e.Known {
					known++
				}
			}
		}))
	}
	if known < rounds*batch/2 {
		panic("estimates are not known")
	}
	f.op[3] = median(v)
}

// serve measures a start: the poll of a called session that takes a free seat.
func (b *bench) serve(f *figures) {
	var v []float64
	seated := b.live[:4096]
	for range rounds {
		for _, n := range seated[:1000] {
			b.m.Apply(b.now, session.Event{Kind: session.Cancel, Key: key(n)})
		}
		b.now = b.now.Add(session.TickEvery)
		b.m.Tick(b.now)
		called := b.called(1000)
		v = append(v, timed(len(called), func() {
			for _, n := range called {
				b.m.Apply(b.now, session.Event{Kind: session.Request, Key: key(n), Size: 8 << 30, To: 8 << 30})
			}
		}))
		if !b.m.Active(key(called[len(called)-1])) {
			panic("a called session did not start")
		}
		seated = append(called, seated[1000:]...)
	}
	f.op[1] = median(v)
}

// called finds sessions that may start now.
func (b *bench) called(most int) (all []uint64) {
	for _, n := range b.live {
		if e, ok := b.m.Estimate(b.now, key(n)); ok && e.Called && len(all) < most {
			all = append(all, n)
		}
	}
	return all
}

// object is a waiting session as a plain queue keeps it.
type object struct {
	id, principal session.Key
	class         int
	arrival, seq  int64
	size          int64
	index         int
}

type plain []*object

func (p plain) Len() int { return len(p) }
func (p plain) Less(i, j int) bool {
	if p[i].class != p[j].class {
		return p[i].class < p[j].class
	}
	return p[i].arrival < p[j].arrival || p[i].arrival == p[j].arrival && p[i].seq < p[j].seq
}
func (p plain) Swap(i, j int) { p[i], p[j] = p[j], p[i]; p[i].index, p[j].index = i, j }
func (p *plain) Push(x any)   { o := x.(*object); o.index = len(*p); *p = append(*p, o) }
func (p *plain) Pop() any {
	o := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return o
}

// baselineArrive is the time of an arrival into a map and a binary heap of the same size: the session is looked up,
// its principal's bound checked, its record made, indexed and pushed.
func baselineArrive(n int) float64 {
	index, count, h := make(map[session.Key]*object, n), map[session.Key]int{}, make(plain, 0, n)
	arrive := func(i uint64) {
		k, p := key(i), key(1<<40+i*31%principals)
		if index[k] != nil || count[p] >= 1<<20 {
			return
		}
		o := &object{id: k, principal: p, class: int(i * 7 % 4), arrival: int64(i), seq: int64(i), size: 8 << 30}
		count[p]++
		index[k] = o
		heap.Push(&h, o)
	}
	for i := range uint64(n - batch) {
		arrive(i)
	}
	var v []float64
	for r := range uint64(rounds) {
		from := uint64(n) + r*batch
		v = append(v, timed(batch, func() {
			for i := range uint64(batch) {
				arrive(from + i)
			}
		}))
		for i := range uint64(batch) {
			o := index[key(from+i)]
			delete(index, o.id)
			heap.Remove(&h, o.index)
		}
	}
	return median(v)
}

// sortTime is what a tick that sorts the queue costs.
func sortTime(n int) float64 {
	rnd := rand.New(rand.NewPCG(5, 6))
	all := make(plain, n)
	for i := range all {
		all[i] = &object{id: key(uint64(i)), class: i * 7 % 4, arrival: rnd.Int64N(1e9), seq: int64(i)}
	}
	var v []float64
	for range rounds {
		w := slices.Clone(all)
		v = append(v, timed(1, func() {
			slices.SortFunc(w, func(a, b *object) int {
				switch {
				case plain{a, b}.Less(0, 1):
					return -1
				default:
					return 1
				}
			})
		}))
	}
	return median(v)
}
