package storm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// kept is how many events a story can look back on, told how many it prints.
const (
	kept = 8192
	told = 60
)

// waits is what most events say.
const waits = "is told to wait {time}, at place {b}"

// event is one thing that happened, kept without words: most are never told.
type event struct {
	at     clock.Mono
	client *client
	key    session.Key
	what   string
	a, b   int64
}

// story is the last events of a run.
type story struct {
	ring [kept]event
	n    int
}

func (s *story) note(at clock.Mono, c *client, key session.Key, what string, a, b int64) {
	e := &s.ring[s.n%kept]
	*e = event{at: at, client: c, key: key, what: what, a: a, b: b}
	s.n++
}

// tell gives the last events about a session and of the whole server, in words; when they are few, what happened to
// others just before the end too.
func (s *story) tell(key session.Key) string {
	var picked []int
	first := max(0, s.n-kept)
	polls := 0
	for i := s.n - 1; i >= first && len(picked) < told; i-- {
		e := &s.ring[i%kept]
		if e.key == key && e.what == waits {
			if polls++; polls > 5 {
				continue // the same again and again
			}
		} else if e.key == key {
			polls = 0
		}
		if e.client == nil || e.key == key || s.n-i <= 20 {
			picked = append(picked, i)
		}
	}
	slices.Reverse(picked)
	var b strings.Builder
	for _, i := range picked {
		e := &s.ring[i%kept]
		who := "server"
		if e.client != nil {
			kind := ""
			if e.client.stock {
				kind = ", no id"
			}
			who = fmt.Sprintf("download %x of client %d (%s, principal %d%s)", e.key[:3], e.client.number, e.client.class, e.client.principal, kind)
			if e.key == key {
				who = "* " + who
			}
		}
		fmt.Fprintf(&b, "%14s  %s: %s\n", time.Duration(e.at).Round(time.Millisecond), who, e.words())
	}
	return b.String()
}

// words fills the numbers in; a time is given in nanoseconds, a byte count as it is.
func (e *event) words() string {
	w := strings.ReplaceAll(e.what, "{time}", time.Duration(e.a).Round(time.Millisecond).String())
	w = strings.ReplaceAll(w, "{a}", fmt.Sprint(e.a))
	return strings.ReplaceAll(w, "{b}", fmt.Sprint(e.b))
}
