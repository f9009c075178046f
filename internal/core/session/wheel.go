package session

import "github.com/roadstead/roadstead/internal/clock"

// The wheel: buckets of one tick each, far enough for a tombstone. A poll only rewrites its record's deadline; the
// record moves when its old bucket comes due, so a tick costs what is due and never the queue's length (D-7.2).
const (
	buckets     = 2048
	bucketWidth = TickEvery
)

type wheel struct {
	head [buckets]uint32
	at   int64 // the bucket that came due last, counted from time zero
}

func bucketOf(t clock.Mono) int64 { return int64(t) / int64(bucketWidth) }

// put makes sure that the record is looked at no later than the instant.
func (w *wheel) put(a *arena, h uint32, at clock.Mono) {
	r := a.at(h)
	b := min(max(bucketOf(at)+1, w.at+1), w.at+buckets-1)
	if r.has(linked) {
		ahead := (int64(r.bucket) - w.at%buckets + buckets) % buckets
		if w.at+ahead <= b && ahead > 0 {
			return // comes due early enough where it is
		}
		w.drop(a, h)
	}
	i := uint16(b % buckets)
	r.bucket, r.prev, r.next = i, 0, w.head[i]
	if r.next != 0 {
		a.at(r.next).prev = h
	}
	w.head[i] = h
	r.set(linked)
}

// drop takes the record out of its bucket.
func (w *wheel) drop(a *arena, h uint32) {
	r := a.at(h)
	if !r.has(linked) {
		return
	}
	if r.prev != 0 {
		a.at(r.prev).next = r.next
	} else {
		w.head[r.bucket] = r.next
	}
	if r.next != 0 {
		a.at(r.next).prev = r.prev
	}
	r.prev, r.next = 0, 0
	r.clear(linked)
}

// turn takes every record out whose bucket has come and calls due for it, which puts those back that stay.
func (w *wheel) turn(a *arena, now clock.Mono, due func(h uint32)) {
	to := bucketOf(now)
	if to-w.at > buckets {
		w.at = to - buckets // a long silence: every bucket once is enough
	}
	for w.at < to {
		w.at++
		i := w.at % buckets
		h := w.head[i]
		w.head[i] = 0
		for h != 0 {
			r := a.at(h)
			next := r.next
			r.prev, r.next = 0, 0
			r.clear(linked)
			due(h)
			h = next
		}
	}
}
