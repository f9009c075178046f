package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// playSlow has one reader in ten on a line that takes a fiftieth of a seat's part of the link. There are more of them
// than seats: without the minimum rate they would soon have every seat, and the link would idle while all others wait.
// Nobody is cut: when nobody waits any more the lines become good, so that the run ends, and all must come through.
func playSlow(ctx context.Context, b *bench, s scenario) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	part := s.rate / int64(s.seats)
	st, err := b.open(ctx, s, fmt.Sprintf("ROADSTEAD_DOWNLOAD_MIN_RATE=%d", part/10))
	defer st.stop()
	if err != nil {
		return err
	}
	good := make(chan struct{})
	fetches, slow := make([]*fetch, s.clients), 0
	for i := range fetches {
		fetches[i] = &fetch{key: st.world.keys[i%len(st.world.keys)], file: st.common()}
		if i%10 == 9 {
			slow++
			// On loopback, whose packets are large, the kernel takes more than two megabytes ahead of any reader. Ranges as
			// small as the others' would be over for the server while the reader has hardly begun.
			fetches[i].http, fetches[i].whole = badLine(part/50, good), true
		}
	}
	began := time.Now()
	p, err := st.begin(ctx, 0, fetches)
	if err != nil {
		return err
	}
	w := &watch{server: st.srv, world: st.world, scenario: s, say: b.say, finished: p.finished.Load}
	watching, enough := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { w.run(watching) })
	waited := until(ctx, &p.started, len(fetches))
	close(good)
	all := p.wait()
	enough()
	background.Wait()
	if waited != nil {
		b.say("%s: somebody still waited when the time was over", s.name)
	}
	return judgeSlow(ctx, st, w, began, all, slow)
}

func judgeSlow(ctx context.Context, st *stage, w *watch, began time.Time, all []outcome, slow int) error {
	st.flawless(all)
	t := clocked(began, all)
	waited := t.lastStart.Sub(began)
	_, wire, err := between(w.samples, began, t.lastStart)
	if err != nil {
		return err
	}
	aside, err := st.srv.metric(ctx, `roadstead_download_sessions_ended_total{class="release",outcome="aside"}`)
	if err != nil {
		aside = 0 // a metric that never counted is not written
	}
	st.report(atLeast("busy", wire/(float64(st.s.rate)*waited.Seconds()), 0.95))
	st.report(atMost("samples_over_seats", float64(w.over), 0))
	st.b.say("%s: %d slow readers, %d seats, %.0f moved aside; anyone waited for %.1f s; least busy 2 s: %.2f", st.s.name,
		slow, st.s.seats, aside, waited.Seconds(), leastBusy(w.samples, st.s, began, t.lastStart))
	return nil
}

// badLine is a client whose connections take so many bytes per second until the line becomes good.
func badLine(rate int64, good <-chan struct{}) *http.Client {
	// A small window from the first packet on: the kernel must not take for the reader what the reader does not.
	dial := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10) })
		if err == nil {
			err = failed
		}
		return err
	}}
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &badConn{Conn: c, rate: rate, good: good}, nil
	}}}
}

type badConn struct {
	net.Conn
	rate int64
	good <-chan struct{}
}

// Read takes a little and a while for it.
func (c *badConn) Read(p []byte) (int, error) {
	select {
	case <-c.good:
		return c.Conn.Read(p)
	default:
	}
	n, err := c.Conn.Read(p[:min(len(p), 8<<10)])
	select {
	case <-c.good:
	case <-time.After(time.Duration(n) * time.Second / time.Duration(c.rate)):
	}
	return n, err
}
