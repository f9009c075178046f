package storetest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/store"
)

func place(n int, state session.SavedState) downloads.Place {
	p := downloads.Place{ArrivedAt: at().Add(time.Duration(n) * time.Millisecond)}
	p.Key, p.Principal = session.Key{byte(n), byte(n >> 8)}, session.Key{1}
	p.State, p.Class, p.Identified, p.Sequence, p.Size, p.Left = state, class.Bulk, n%2 == 0, uint32(n), 1<<40, int64(n)
	if state != session.SavedWaiting {
		p.Begun, p.Start, p.Spans, p.EndsAt = true, -1, []session.Span{{From: 0, To: 5}, {From: 7, To: 1 << 40}}, at().Add(time.Minute)
		p.TailOnly = true
	}
	return p
}

// journal proves downloads.Journal: what is written is read, by another process too; a later row replaces an earlier
// one; what ended is swept.
func journal(t *testing.T, a, b *store.Store) {
	empty, err := a.LoadJournal(t.Context())
	ok(t, err)
	if !empty.Alive.IsZero() || len(empty.Places)+len(empty.Bookings) != 0 {
		t.Fatalf("a new journal holds %+v", empty)
	}
	var batch downloads.Batch
	batch.Alive = at()
	for n := range 1000 { // more than one statement's worth
		batch.Places = append(batch.Places, place(n, session.SavedWaiting))
		batch.Bookings = append(batch.Bookings, downloads.BookingRow{Key: session.Key{byte(n), byte(n >> 8)}, Body: fmt.Sprintf(`{"n":%d,"é":"'"}`, n)})
	}
	ok(t, a.SaveJournal(t.Context(), batch))
	ok(t, b.SaveJournal(t.Context(), downloads.Batch{
		Alive: at().Add(time.Second), Places: []downloads.Place{place(3, session.SavedPaused)},
		Bookings: []downloads.BookingRow{{Key: session.Key{3}, Body: "{}", EndsAt: at().Add(time.Minute)}},
	}))
	batch.Places[3], batch.Bookings[3] = place(3, session.SavedPaused), downloads.BookingRow{Key: session.Key{3}, Body: "{}", EndsAt: at().Add(time.Minute)}
	got := loadJournal(t, a)
	if !got.Alive.Equal(at().Add(time.Second)) || !reflect.DeepEqual(got.Places, batch.Places) || !reflect.DeepEqual(got.Bookings, batch.Bookings) {
		t.Fatalf("%d places, %d bookings, alive %v; the fourth is %+v", len(got.Places), len(got.Bookings), got.Alive, got.Places[3])
	}
	ok(t, a.SweepJournal(t.Context(), at().Add(time.Minute)))
	equal(t, len(loadJournal(t, b).Places), 1000)
	ok(t, a.SweepJournal(t.Context(), at().Add(time.Minute+time.Millisecond)))
	got = loadJournal(t, b)
	equal(t, len(got.Places), 999)
	equal(t, len(got.Bookings), 999)
	ok(t, a.ClearJournal(t.Context()))
	got = loadJournal(t, b)
	equal(t, len(got.Places)+len(got.Bookings), 0)
}

func loadJournal(t *testing.T, s *store.Store) downloads.Batch {
	t.Helper()
	got, err := s.LoadJournal(t.Context())
	ok(t, err)
	slices.SortFunc(got.Places, func(a, b downloads.Place) int { return cmp.Compare(a.Sequence, b.Sequence) })
	slices.SortFunc(got.Bookings, func(a, b downloads.BookingRow) int {
		return cmp.Compare(int(a.Key[1])<<8|int(a.Key[0]), int(b.Key[1])<<8|int(b.Key[0]))
	})
	return got
}
