package downloads

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
)

// booking is what is remembered of a booked download beside its session (D-2.14). It lives as long as the session, and
// as long as a tombstone after its end, so that a repeated question hears what became of it.
type booking struct {
	ID         string      `json:"id"`
	Principal  session.Key `json:"principal"`
	Session    session.Key `json:"session"`
	Idempotent session.Key `json:"idempotent"` // of principal and Idempotency-Key
	Body       session.Key `json:"body"`       // of what was asked
	Object     Object      `json:"object"`
	Offset     int64       `json:"offset"`
	Class      class.Class `json:"class"`
	NotBefore  time.Time   `json:"notBefore"`
	NotAfter   time.Time   `json:"notAfter"`
	CreatedAt  time.Time   `json:"createdAt"`
	Ended      string      `json:"ended"`  // the state it ended in, or empty
	EndsAt     time.Time   `json:"endsAt"` // when that is forgotten; before the end: when it lapses although no session says so

	noted  bool // in changed
	inHeap bool
}

// name is what a booking is found by: ids are unique per principal.
func (b *booking) name() session.Key { return digest(b.Principal, digest(b.ID)) }

// bookings finds bookings by what they are asked for, and forgets them in time.
type bookings struct {
	byName    map[session.Key]*booking
	bySession map[session.Key]*booking
	byAsk     map[session.Key]*booking // by Idempotency-Key
	of        map[session.Key]int      // how many a principal has
	due       deadlines
	changed   []*booking // not in the journal yet
	journals  bool
}

func newBookings() bookings {
	return bookings{
		byName: map[session.Key]*booking{}, bySession: map[session.Key]*booking{}, byAsk: map[session.Key]*booking{}, of: map[session.Key]int{},
	}
}

// add remembers a booking in place of an ended one of its id.
func (l *bookings) add(b *booking) {
	if old := l.byName[b.name()]; old != nil {
		l.drop(old)
	}
	l.byName[b.name()], l.bySession[b.Session], l.byAsk[b.Idempotent] = b, b, b
	l.of[b.Principal]++
	l.note(b)
}

func (l *bookings) drop(b *booking) {
	if l.byName[b.name()] != b {
		return
	}
	delete(l.byName, b.name())
	if l.bySession[b.Session] == b {
		delete(l.bySession, b.Session)
	}
	if l.byAsk[b.Idempotent] == b {
		delete(l.byAsk, b.Idempotent)
	}
	if l.of[b.Principal]--; l.of[b.Principal] == 0 {
		delete(l.of, b.Principal)
	}
}

// end lets a booking say for a while what became of it.
func (l *bookings) end(b *booking, state string, now time.Time) {
	if b.Ended == "" {
		b.Ended = state
		l.expire(b, now.Add(session.KeepGone))
		l.note(b)
	}
}

// expire sets when the booking is looked at.
func (l *bookings) expire(b *booking, at time.Time) {
	b.EndsAt = at
	if !b.inHeap {
		b.inHeap = true
		heap.Push(&l.due, deadline{at, b})
	}
}

// note remembers to tell the journal.
func (l *bookings) note(b *booking) {
	if l.journals && !b.noted {
		b.noted = true
		l.changed = append(l.changed, b)
	}
}

// sweep ends what lapsed and forgets what ended.
func (l *bookings) sweep(now time.Time) {
	for len(l.due) > 0 && !l.due[0].at.After(now) {
		b := l.due[0].booking
		heap.Pop(&l.due)
		b.inHeap = false
		switch {
		case b.EndsAt.IsZero(): // its session counts for it again
		case b.EndsAt.After(now):
			l.expire(b, b.EndsAt)
		case b.Ended == "":
			l.end(b, api.BookingLapsed, now)
		default:
			l.drop(b)
		}
	}
}

// effect follows the session of a booking.
func (l *bookings) effect(f session.Effect, now time.Time) {
	b := l.bySession[f.Key]
	if b == nil {
		return
	}
	switch f.Kind {
	case session.Finished:
		l.end(b, api.BookingFinished, now)
	case session.NoShow, session.Forgot:
		l.end(b, api.BookingLapsed, now)
	}
}

// deadline is an instant at which a booking is looked at.
type deadline struct {
	at      time.Time
	booking *booking
}

// deadlines is a heap, the first on top.
type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *deadlines) Push(x any) { *d = append(*d, x.(deadline)) }

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// takeBookings appends the rows of bookings that changed, as far as there is room.
func (s *Service) takeBookings(rows []BookingRow) []BookingRow {
	l := &s.bookings
	n := min(len(l.changed), journalMost-len(rows))
	for _, b := range l.changed[:n] {
		b.noted = false
		row := BookingRow{Key: b.name()}
		if b.Ended != "" {
			row.EndsAt = b.EndsAt
		}
		text, err := json.Marshal(b)
		if err != nil { // plain data; this cannot happen
			slog.Error("a booking cannot be written down", "error", err)
			continue
		}
		row.Body = string(text)
		rows = append(rows, row)
	}
	l.changed = append(l.changed[:0], l.changed[n:]...)
	return rows
}

// restoreBookings takes up what the journal kept. A booking whose session did not come back lapses if nobody asks.
func (s *Service) restoreBookings(rows []BookingRow) {
	l, wall := &s.bookings, s.clock.Wall()
	for _, row := range rows {
		var b booking
		if err := json.Unmarshal([]byte(row.Body), &b); err != nil {
			slog.Warn("a booking in the journal cannot be read and is left out", "error", err)
			continue
		}
		if b.Ended != "" && !b.EndsAt.After(wall) {
			continue
		}
		l.add(&b)
		l.expire(&b, cmp.Or(b.EndsAt, wall.Add(session.KeepGone)))
	}
	l.journals = true
}
