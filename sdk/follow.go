package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// RunMessage is one message of a Run's stream: either an event or a line of its log.
type RunMessage struct {
	ID    string // where to go on after it
	Event *api.RunEvent
	Log   *api.LogLine
}

// Follow is how to follow a Run. Its zero value is fine.
type Follow struct {
	After  string      // ID of the last message that is known; empty: from the first
	Events func(Event) // Retrying; may be nil
}

const (
	signOfLife = 45 * time.Second // three of the server's: a stream that is silent for longer is broken
	maxMessage = 4 << 20
)

// FollowRun gives what happened to a Run and what it wrote, from its first event, as it comes; it ends when the Run
// does. A stream that breaks goes on after the last message, so nothing is missed or seen twice; the retry budget
// (D-1.2) counts anew after each message.
func (c *Client) FollowRun(ctx context.Context, run string, f Follow) iter.Seq2[RunMessage, error] {
	return func(yield func(RunMessage, error) bool) {
		s := &following{c: c, address: c.runURL(run, "/follow"), last: f.After, yield: yield, op: c.operation(c.retry, f.Events)}
		if err := s.op.attempt(ctx, s.listen); err != nil {
			yield(RunMessage{}, err)
		}
	}
}

// following is one call of FollowRun.
type following struct {
	c       *Client
	address string
	last    string
	yield   func(RunMessage, error) bool
	op      *operation
}

// listen reads one stream to its end. nil: the Run has ended, or nobody wants to hear more.
func (s *following) listen(parent context.Context) error {
	silence := max(s.c.retry.AttemptTimeout, signOfLife)
	ctx, extend, stop := watch(parent, silence)
	defer stop()
	req, err := s.c.request(ctx, http.MethodGet, s.address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.last != "" {
		req.Header.Set("Last-Event-ID", s.last)
	}
	resp, err := s.c.http.Do(req)
	if err != nil {
		return attemptError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, s.c.clock.Wall())
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxMessage)
	var m message
	for lines.Scan() {
		extend(silence)
		if !m.read(lines.Text()) {
			continue
		}
		over, err := s.deliver(m)
		if over || err != nil {
			return err
		}
		m = message{}
	}
	if err := lines.Err(); err != nil {
		return attemptError(ctx, err)
	}
	return attemptError(ctx, io.ErrUnexpectedEOF)
}

// message is one of a stream of server-sent events.
type message struct{ id, name, data string }

// read takes a line and reports whether the message is whole.
func (m *message) read(line string) bool {
	if line == "" {
		return m.name != ""
	}
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "id":
		m.id = value
	case "event":
		m.name = value
	case "data":
		m.data += value
	}
	return false
}

// deliver hands a message over. over: it was the last one, or nobody wants to hear more. Names it doesn't know are of
// newer servers.
func (s *following) deliver(m message) (over bool, err error) {
	out := RunMessage{ID: m.id}
	switch m.name {
	case "end":
		return true, nil
	case "event":
		out.Event = &api.RunEvent{}
		err = json.Unmarshal([]byte(m.data), out.Event)
	case "log":
		out.Log = &api.LogLine{}
		err = json.Unmarshal([]byte(m.data), out.Log)
	default:
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the stream's message %s: %w", m.id, err)
	}
	s.op.answered()
	s.op.spent = 0
	s.last = m.id
	return !s.yield(out, nil), nil
}
