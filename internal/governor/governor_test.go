package governor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, c Config) *Governor {
	t.Helper()
	g, err := New(c, clock.NewSystem())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The rate is within one percent over five seconds, with one flow as with many (D-12.2).
func TestRate(t *testing.T) {
	for _, rate := range []int64{8 << 20, 40_000_000, 125_000_000, 1_250_000_000} {
		for _, flows := range []int{1, 64, 500} {
			t.Run(fmt.Sprint(rate, "/", flows), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testRate(t, rate, flows) })
			})
		}
	}
}

func testRate(t *testing.T, rate int64, flows int) {
	g := start(t, Config{Total: rate})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var sent atomic.Int64
	var wg sync.WaitGroup
	for i := range flows {
		wg.Go(func() {
			f := g.Flow(fmt.Sprint("p", i%10), [16]byte{15: byte(i)})
			defer f.Close()
			for n := f.Slice(); f.Take(ctx, n, nil) == nil; {
				sent.Add(n)
			}
		})
	}
	wg.Wait()
	near(t, "bytes in 5 s", sent.Load(), 5*rate, 0.01)
}

func TestTakeWaitsAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, Config{Total: 100_000})
		f := g.Flow("p", [16]byte{})
		defer f.Close()
		if err := f.Take(t.Context(), 1_000_000, nil); err != nil || f.Waiting() {
			t.Fatal("the first bytes need no wait")
		}
		began, still := time.Now(), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := f.Take(t.Context(), 1000, func() { still++ }); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if !f.Waiting() {
			t.Error("does not say that it waits")
		}
		<-done
		if d := time.Since(began).Round(100 * time.Millisecond); d != 10*time.Second && d != 9980*time.Millisecond {
			t.Errorf("waited %v, want 10 s", d)
		}
		if still < 4 || f.Waiting() {
			t.Errorf("called still %d times, waiting %v", still, f.Waiting())
		}
	})
}

func TestTakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, Config{Total: 100_000})
		a, b := g.Flow("a", [16]byte{}), g.Flow("b", [16]byte{})
		if err := a.Take(t.Context(), 1_000_000, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Take(ctx, 50_000, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Take = %v", err)
		}
		b.Close()
		began := time.Now()
		if err := a.Take(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 9*time.Second {
			t.Errorf("the one who left still cost %v", d)
		}
		a.Close()
		if len(g.queue.names) != 0 {
			t.Errorf("%d principals left", len(g.queue.names))
		}
	})
}

// Ceilings change while flows wait, in both directions (D-9.3).
func TestSetTotalWakesTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, Config{Total: MinRate})
		f := g.Flow("p", [16]byte{})
		defer f.Close()
		if err := f.Take(t.Context(), 1<<20, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			if err := g.SetTotal(0); err != nil {
				t.Error(err)
			}
		})
		if err := f.Take(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("waited %v", d)
		}
		if f.Slice() != maxSlice {
			t.Errorf("slice %d without ceilings", f.Slice())
		}
	})
}

func TestSlice(t *testing.T) {
	for _, c := range []struct {
		conf Config
		want int64
	}{
		{Config{}, 4 << 20},
		{Config{Total: 40_000_000}, 320_000},
		{Config{Total: 1_000_000}, 64 << 10},
		{Config{Total: 1e12}, 4 << 20},
		{Config{Total: 1e9, PerPrincipal: 40_000_000}, 320_000},
		{Config{PerPrincipal: 40_000_000}, 320_000},
	} {
		f := start(t, c.conf).Flow("p", [16]byte{})
		if got := f.Slice(); got != c.want {
			t.Errorf("%+v: slice %d, want %d", c.conf, got, c.want)
		}
		f.Close()
	}
}

func TestConfigNamesTheField(t *testing.T) {
	for field, c := range map[string]Config{"total": {Total: 1}, "perPrincipal": {PerPrincipal: -1}} {
		_, err := New(c, clock.NewSystem())
		if f := fault.From(err); f.Code != fault.InvalidInput || f.Details[0].Field != field {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func BenchmarkTakeFree(b *testing.B) {
	for name, c := range map[string]Config{"none": {}, "unreached": {Total: 1e15}} {
		b.Run(name, func(b *testing.B) {
			g, err := New(c, clock.NewSystem())
			if err != nil {
				b.Fatal(err)
			}
			b.RunParallel(func(pb *testing.PB) {
				f := g.Flow("p", [16]byte{})
				defer f.Close()
				for pb.Next() {
					if err := f.Take(b.Context(), 1<<20, nil); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
