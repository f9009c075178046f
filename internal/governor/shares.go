package governor

import (
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
)

// level is the virtual time, in bytes, of one set of competitors.
type level struct {
	at    int64 // start tag of the last one served
	floor int64 // where newcomers begin: the furthest end of those who left, so that leaving forgives nothing
}

// tags place one competitor in its level. One that begins to want starts at the level's virtual time, or at the end
// of what it was served before when that is later: no arrears for having been idle, no gain from having been greedy.
type tags struct{ start, finish int64 }

func (t *tags) begin(l *level) { t.start = max(l.at, t.finish) }

func (t *tags) serve(l *level, n int64) {
	l.at = t.start
	t.finish = t.start + n
	t.start = t.finish
}

func (t *tags) quit(l *level) { l.floor = max(l.floor, t.finish) }

// lane is a set of principals that compete. There are two: the road, and aside of it the leftover lane, which moves
// when the road wants nothing.
type lane struct {
	level
	ready line[*principal] // want bytes and are under their ceiling, by start tag
}

// account is what a principal is over all lanes: its ceiling and its open flows.
type account struct {
	bucket
	name     string
	flows    int  // open ones, over all sessions
	late     bool // its own bucket, not it, was late: it was parked before its present turn
	sessions map[[16]byte]*session
	road     *principal
	aside    *principal         // nil until a session of it moves aside
	outside  [class.Count]*tags // in the gates; nil until it has something there
}

// principal is an account's place in one lane.
type principal struct {
	place
	tags
	level // of its sessions
	*account
	lane    *lane
	parked  bool // stands in the line of the parked
	wanting line[*session]
}

type session struct {
	place
	tags
	of    *principal
	id    [16]byte
	lane  Lane
	gate  *gate   // where it waits for its class's outside share; nil while it doesn't
	flows int     // open ones
	asks  []*Flow // waiting, in the order they came
}

// gate holds the sessions of one class that began outside its window to their share of the link, split equally between
// principals (D-5.2). A session whose turn has come pays and goes on to its place among all others.
type gate struct {
	bucket
	level // of accounts
	line[*session]
	starved bool // the bucket was all that held the first one back
}

// stand puts a waiting session in the gate's line.
func (g *gate) stand(s *session, t *tags) {
	t.begin(&g.level)
	t.finish = t.start + s.asks[0].want
	s.gate = g
	g.push(s, t.start)
}

// leave takes a session that gave up out of the line.
func (g *gate) leave(s *session) {
	s.gate = nil
	g.remove(s)
}

// next pays for the first of the line and lets it go on; nil when nobody may yet.
func (g *gate) next(now clock.Mono) *session {
	if g.Len() == 0 || !g.open(now) {
		return nil
	}
	s := g.pop()
	s.gate = nil
	g.at = s.key
	g.take(now, s.asks[0].want, g.starved)
	return s
}
