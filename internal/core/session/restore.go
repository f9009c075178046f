package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// SavedState says what a saved session was doing.
type SavedState uint8

// The states of a saved session. The numbers are kept by journals and never change.
const (
	SavedWaiting SavedState = 1 // had a place in the order
	SavedActive  SavedState = 2 // had a seat, or read aside
	SavedPaused  SavedState = 3 // had idled its seat away and kept its arrival until Until (D-2.8)
	SavedGone    SavedState = 4 // had ended: tickets of its key are void until Until (D-8.2)
)

// Saved is what a journal keeps of a session, so that another process takes it up where it stood without waiting for
// the client's ticket.
type Saved struct {
	Key        Key
	Principal  Key
	State      SavedState
	Class      class.Class
	Identified bool
	TailOnly   bool // it asked for nothing but the tail so far (D-2.7)
	Begun      bool // it had a seat once: Start and Spans count
	Arrival    clock.Mono
	Sequence   uint32 // tells apart arrivals of the same millisecond; it goes round, as arrivals go on
	Size       int64
	Left       int64      // bytes the client still wants
	Start      int64      // where the download began; -1 while it asked for the tail alone
	Spans      []Span     // delivered whole
	Until      clock.Mono // SavedPaused and SavedGone: when it is forgotten
}

// Span is bytes From..To of an object, To exclusive.
type Span struct{ From, To int64 }

// Track makes the machine note which sessions change, for Changes.
func (m *Machine) Track() { m.tracks = true }

// note remembers that a session is not as it was last told.
func (m *Machine) note(h uint32, r *record) {
	if !m.tracks || r.noted {
		return
	}
	if len(m.changed) > 2*m.index.n+pageSize {
		m.tidy()
	}
	r.noted = true
	m.changed = append(m.changed, h)
}

// tidy drops the notes of records that were forgotten since, so that the list is bounded by the records however long
// nobody asks for it.
func (m *Machine) tidy() {
	kept := m.changed[:0]
	for _, h := range m.changed {
		if r := m.records.at(h); r.noted {
			r.noted = false // a handle that was used again is there twice
			kept = append(kept, h)
		}
	}
	m.changed = kept
	for _, h := range kept {
		m.records.at(h).noted = true
	}
}

// Unsaved is how many sessions changed since Changes told of them; about as many as there are records at most.
func (m *Machine) Unsaved() int { return len(m.changed) }

// Changes appends the sessions that changed since the last call to buf, each once and as it is now, the longest changed
// first and at most so many. A session whose time to come back is over is not among them: its last row says until when
// it counts.
func (m *Machine) Changes(most int, buf []Saved) []Saved {
	n := 0
	for ; n < len(m.changed) && most > 0; n++ {
		h := m.changed[n]
		r := m.records.at(h)
		if !r.noted {
			continue // forgotten meanwhile, or its record is another's that was told already
		}
		r.noted = false
		buf = append(buf, m.save(r))
		most--
	}
	m.changed = slices.Delete(m.changed, 0, n)
	return buf
}

func (m *Machine) save(r *record) Saved {
	s := Saved{
		Key: r.key, Principal: m.principals.all[r.principal].key, Class: r.class, Identified: r.has(identified),
		TailOnly: r.has(tailOnly), Arrival: r.arrival(), Sequence: uint32(r.order & (1<<sequenceBits - 1)), Size: r.size, Left: r.left,
	}
	switch r.state {
	case waiting:
		s.State = SavedWaiting
	case active, aside:
		s.State, s.Left = SavedActive, max(0, m.wants(r))
	case paused:
		s.State, s.Until = SavedPaused, r.deadline
	default:
		s.State, s.Until = SavedGone, r.deadline
		return s
	}
	if r.seat != 0 {
		c := &m.seats[r.seat-1].covered
		s.Begun, s.Start = true, c.start
		for _, sp := range c.spans {
			s.Spans = append(s.Spans, Span{sp.from, sp.to})
		}
	}
	return s
}

// Restore takes saved sessions up, whatever their order: those that waited wait again at their arrival, those that had
// a seat or had idled it away keep arrival and delivered intervals for as long as after a pause, and ended ones void
// their tickets as before (D-8.2). Waiting ones are confirmed until their clients had time for their longest check.
// It returns those that do not fit the bounds (D-7.1). A key that is known already is left as it is.
func (m *Machine) Restore(now clock.Mono, saved []Saved) (left []Saved) {
	slices.SortFunc(saved, func(a, b Saved) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Sequence, b.Sequence))
	})
	for i := range saved {
		s := &saved[i]
		if m.index.find(&m.records, &s.Key) != 0 {
			continue
		}
		p, known := m.principals.index[s.Principal]
		full := s.State != SavedGone && known && int(m.principals.all[p].records) >= m.policy.MaxPerPrincipal
		if full || m.index.n >= m.policy.MaxSessions {
			left = append(left, *s)
			continue
		}
		m.restore(now, s)
	}
	return left
}

func (m *Machine) restore(now clock.Mono, s *Saved) {
	h := m.records.take()
	r := m.records.at(h)
	m.sequence++
	r.key, r.principal, r.class = s.Key, m.principals.number(s.Principal), s.Class
	r.order, r.size, r.left = orderOf(min(s.Arrival, now), m.sequence), s.Size, s.Left
	m.principals.all[r.principal].known++
	m.principals.all[r.principal].records++ // bury takes it back
	m.index.add(&m.records, h)
	if s.Identified {
		r.set(identified)
	}
	if s.TailOnly {
		r.set(tailOnly)
	}
	if s.Begun && s.State != SavedGone {
		m.chair(r)
		c := &m.seats[r.seat-1].covered
		c.start, c.lost = s.Start, s.State == SavedActive
		for _, sp := range s.Spans {
			c.add(sp.From, sp.To)
		}
	}
	switch s.State {
	case SavedWaiting:
		r.state = waiting
		r.set(fresh)
		m.newly = append(m.newly, h)
		m.push(h, r, false)
		r.deadline = now.Add(m.patience())
	case SavedActive:
		m.shelve(r, now.Add(KeepPaused))
	case SavedPaused:
		m.shelve(r, min(s.Until, now.Add(KeepPaused)))
	default:
		m.bury(now, h, r)
		r.deadline = min(s.Until, r.deadline)
		m.graves[len(m.graves)-1].until = r.deadline
		r.noted = false
	}
	m.arm(now, h, r)
}

// shelve lets a restored session that had a seat keep its arrival, without a seat.
func (m *Machine) shelve(r *record, until clock.Mono) {
	if r.seat == 0 {
		m.chair(r)
	}
	r.state, r.deadline = paused, until
	m.counts[r.class].Paused++
}

// patience is how long a restored session may take to ask: its longest check time, spread included, and time for a
// client that found nobody there.
func (m *Machine) patience() time.Duration {
	check := MaxCheck
	if m.policy.PollBudget > 0 {
		check = MaxStretched
	}
	return check + check/10 + 2*NoShowSlack
}
