package secrets

import (
	"fmt"
	"io"
)

// Stream passes on what is written to it with secret values masked, wherever writes cut them. What may be the beginning
// of a value is held back until it is known: at most as much as the longest form of a value, five times that if every
// byte is on a line of its own. Line ends are kept, so that lines stay lines. It is used by one goroutine.
type Stream struct {
	m *Masker
	w io.Writer

	state  int32
	wraps  int     // line ends since the last other byte
	held   []byte  // read and not passed on
	masked []bool  // of held: belongs to a value
	base   int64   // position of held[0] in the stream
	starts []int64 // positions of the bytes that state stands for, line ends not among them
	begin  int64   // the latest stretch that was found to be masked
	end    int64

	hidden bool // what was passed on last is a mask
	out    []byte
}

// Write takes bytes in. It fails as w fails; what was held back then is lost.
func (s *Stream) Write(p []byte) (int, error) {
	for _, b := range p {
		if s.state == 0 && s.m.first[b] == 0 && b != '\n' && b != '\r' { // most of most output
			s.wraps = 0
			s.base++
			s.emit(b, false)
			continue
		}
		s.take(b)
	}
	return len(p), s.pass()
}

// Close passes on what is held back. A beginning of a value that is long enough to be told is masked: the output was cut
// in the middle of it. It does not close w.
func (s *Stream) Close() error {
	s.giveUp()
	return s.pass()
}

func (s *Stream) pass() error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := s.w.Write(s.out)
	s.out = s.out[:0]
	if err != nil {
		return fmt.Errorf("passing masked output on: %w", err)
	}
	return nil
}

func (s *Stream) take(b byte) {
	if b == '\n' || b == '\r' {
		if s.wraps++; s.state == 0 || s.wraps > s.m.wraps {
			s.giveUp()
			s.emit(b, false)
			s.base++
			return
		}
		s.held, s.masked = append(s.held, b), append(s.masked, false)
		return
	}
	s.wraps = 0
	at := s.base + int64(len(s.held))
	s.held, s.masked = append(s.held, b), append(s.masked, false)
	s.starts = append(s.starts, at)
	s.state = s.m.next(s.state, b)
	n := &s.m.nodes[s.state]
	s.starts = s.starts[len(s.starts)-int(n.depth):]
	if n.match > 0 {
		s.hide(s.starts[len(s.starts)-int(n.match)], at+1)
	}
	if n.depth == 0 {
		s.release(at + 1)
	} else {
		s.release(s.starts[0])
	}
}

// hide marks what lies between two positions. What the latest stretch has is not marked again, so that a value that
// overlaps itself costs no more than any other.
func (s *Stream) hide(from, to int64) {
	mark := func(from, to int64) {
		for i := from; i < to; i++ {
			s.masked[i-s.base] = true
		}
	}
	switch {
	case from > s.end || s.end <= s.base:
		mark(from, to)
		s.begin = from
	case from < s.begin:
		mark(from, max(from, s.begin))
		mark(s.end, to)
		s.begin = from
	default:
		mark(s.end, to)
	}
	s.end = to
}

// giveUp ends what may have been the beginning of a value.
func (s *Stream) giveUp() {
	end := s.base + int64(len(s.held))
	if len(s.starts) >= MinValue {
		s.hide(s.starts[0], end)
	}
	s.release(end)
	s.state, s.starts = 0, s.starts[:0]
}

// release passes on what lies before the position.
func (s *Stream) release(to int64) {
	n := int(to - s.base)
	for i, b := range s.held[:n] {
		s.emit(b, s.masked[i])
	}
	s.held, s.masked, s.base = s.held[n:], s.masked[n:], to
}

func (s *Stream) emit(b byte, masked bool) {
	switch {
	case !masked || b == '\n' || b == '\r':
		s.out = append(s.out, b)
		s.hidden = false
	case !s.hidden:
		s.out = append(s.out, mask...)
		s.hidden = true
	}
}
