package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// life is one payload as it was seen from outside: from its own word that it started, until nothing of it holds its
// connection any more. The kernel closes that however the processes die, children that left the group included.
type life struct {
	attempt, run string
	start, end   time.Time // end is zero while it lives
	finished     bool      // it said itself that it was done
}

// collector listens to the payloads.
type collector struct {
	listener net.Listener

	mu    sync.Mutex
	lives []*life
}

func listen() (*collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			go c.hear(conn)
		}
	}()
	return c, nil
}

func (c *collector) port() int { return c.listener.Addr().(*net.TCPAddr).Port }

func (c *collector) hear(conn net.Conn) {
	defer conn.Close()
	var l *life
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		words := strings.Fields(lines.Text())
		c.mu.Lock()
		switch {
		case len(words) == 3 && words[0] == "start":
			l = &life{attempt: words[1], run: words[2], start: time.Now()}
			c.lives = append(c.lives, l)
		case len(words) == 2 && words[0] == "stop" && l != nil:
			l.finished = true
		}
		c.mu.Unlock()
	}
	if l != nil {
		c.mu.Lock()
		l.end = time.Now()
		c.mu.Unlock()
	}
}

// all is a copy of what was heard.
func (c *collector) all() (out []life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lives {
		out = append(out, *l)
	}
	return out
}

// script is a job that keeps one connection to the collector for as long as anything of it lives. Its result is its
// Attempt's id, so that a result tells whose it is.
func script(port int, seconds float64, code int) []string {
	return []string{"bash", "-c", fmt.Sprintf(`
exec 3<>/dev/tcp/127.0.0.1/%d || exit 90
echo "start $ROADSTEAD_ATTEMPT_ID $ROADSTEAD_RUN_ID" >&3
(setsid sleep 60 &)
sleep %.2f
echo "$ROADSTEAD_ATTEMPT_ID" > "$ROADSTEAD_OUTPUTS/whose"
echo "stop $ROADSTEAD_ATTEMPT_ID" >&3
exit %d`, port, seconds, code)}
}
