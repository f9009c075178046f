package forecast

import (
	"slices"
	"time"
)

// Seats plays seats forward: sessions share the link as the governor shares it, equally between principals and then
// equally between the sessions of one principal, until one is done.
type Seats struct {
	rate    float64 // bytes per second of the link
	ceiling float64 // bytes per second of one principal, 0 for none
	seats   []seat
	groups  []group
	scale   []float64 // bytes per second of one seat, by group
	pace    []float64 // seconds per byte of one seat, by group
}

type seat struct {
	left  float64 // bytes
	group int     // index into groups
	tag   uint32
}

// group is the seats of one principal.
type group struct {
	principal uint32
	seats     int
}

// Reset empties the seats. Rates are in bytes per second; ceiling 0 means none.
func (s *Seats) Reset(rate, ceiling int64) {
	s.rate, s.ceiling = float64(rate), float64(ceiling)
	s.seats, s.groups = s.seats[:0], s.groups[:0]
}

// Len is the number of seats taken.
func (s *Seats) Len() int { return len(s.seats) }

// Take seats a session with bytes left; tag comes back when it is done.
func (s *Seats) Take(principal uint32, bytes int64, tag uint32) {
	at := -1
	for i := range s.groups {
		if s.groups[i].principal == principal && s.groups[i].seats > 0 {
			at = i
			break
		}
		if s.groups[i].seats == 0 && at < 0 {
			at = i
		}
	}
	if at < 0 {
		s.groups = append(s.groups, group{})
		at = len(s.groups) - 1
	}
	s.groups[at].principal = principal
	s.groups[at].seats++
	s.seats = append(s.seats, seat{left: float64(max(bytes, 1)), group: at, tag: tag})
}

// Until is how long the next end is away; ok is false when no seat is taken.
func (s *Seats) Until() (took time.Duration, ok bool) {
	if len(s.seats) == 0 || s.rate <= 0 {
		return 0, false
	}
	s.split()
	_, soonest := s.soonest()
	return seconds(soonest), true
}

// Play lets time go by in which nobody ends.
func (s *Seats) Play(d time.Duration) {
	s.split()
	s.pass(d.Seconds())
}

func (s *Seats) pass(seconds float64) {
	for i := range s.seats {
		t := &s.seats[i]
		t.left = max(0, t.left-seconds*s.scale[t.group])
	}
}

// soonest is the seat that ends first and the seconds it takes.
func (s *Seats) soonest() (first int, took float64) {
	took = s.seats[0].left * s.pace[s.seats[0].group]
	for i := range s.seats {
		if e := s.seats[i].left * s.pace[s.seats[i].group]; e < took {
			first, took = i, e
		}
	}
	return first, took
}

// Next plays until the next session is done, frees its seat and says which it was and how long it took.
func (s *Seats) Next() (tag uint32, took time.Duration, ok bool) {
	if len(s.seats) == 0 || s.rate <= 0 {
		return 0, 0, false
	}
	s.split()
	first, soonest := s.soonest()
	s.pass(soonest)
	done := s.seats[first]
	s.groups[done.group].seats--
	s.seats = slices.Delete(s.seats, first, first+1) // in order, so that ties end as they began
	return done.tag, seconds(soonest), true
}

// split fills scale with the rate of one seat of each group.
func (s *Seats) split() {
	groups := 0
	for _, g := range s.groups {
		if g.seats > 0 {
			groups++
		}
	}
	each := s.rate / float64(max(groups, 1))
	if s.ceiling > 0 {
		each = min(each, s.ceiling)
	}
	s.scale, s.pace = s.scale[:0], s.pace[:0]
	for _, g := range s.groups {
		n := float64(max(g.seats, 1))
		s.scale, s.pace = append(s.scale, each/n), append(s.pace, n/each)
	}
}

// Ends calls done for every seat with the time it has left if the split stays as it is.
func (s *Seats) Ends(done func(tag uint32, left time.Duration)) {
	if s.rate <= 0 {
		return
	}
	s.split()
	for _, t := range s.seats {
		done(t.tag, seconds(t.left*s.pace[t.group]))
	}
}

// seconds converts without overflow: a century stands for never.
func seconds(s float64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(s, century) * float64(time.Second))
}
