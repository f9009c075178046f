package downloads_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/store"
	"github.com/roadstead/roadstead/internal/ticket"
)

// BenchmarkArrivals is what the journal costs those who arrive: new sessions, one after the other, while the journal is
// written to a real database once a second beside them.
func BenchmarkArrivals(b *testing.B) {
	for _, journalled := range []bool{false, true} {
		b.Run("journal="+strconv.FormatBool(journalled), func(b *testing.B) { arrivals(b, journalled) })
	}
}

func arrivals(b *testing.B, journalled bool) {
	db, err := store.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "x.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	conf := downloads.Default(1)
	conf.Policy.MaxSessions, conf.Policy.MaxPerPrincipal, conf.Policy.LinkRate = 1<<20, 1<<20, 100<<20
	s, err := downloads.New(b.Context(), conf, clock.NewSystem(), db, ticket.New([]byte("a key")))
	if err != nil {
		b.Fatal(err)
	}
	if journalled {
		if err := s.Resume(b.Context(), db); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r := downloads.Request{ObjectID: "r/o@1", Size: 1 << 30, To: 1 << 30}
	n := 0
	for b.Loop() {
		n++
		r.DownloadID = strconv.Itoa(n)
		r.Principal = identity.Principal{ID: "p" + strconv.Itoa(n%1000), Ceiling: class.Bulk}
		pass, err := s.Admit(ctx, r)
		if _, waits := errors.AsType[*downloads.Waiting](err); !waits && err != nil && pass == nil {
			b.Skipf("the queue is full after %d", n)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "arrivals/s")
	if journalled {
		b.ReportMetric(float64(s.Journal().Unsaved), "unsaved")
	}
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
