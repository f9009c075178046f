package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/ticket"
)

// poll appends what the client of the n-th session sends.
func poll(buf []byte, tickets ticket.Signer, n int, now time.Time) []byte {
	r := request(n)
	buf = append(buf, "GET "+api.PathFiles+"load/file.bin HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: roadstead-sdk\r\nRange: bytes=0-8388607\r\n"...)
	buf = append(buf, "Authorization: Bearer "+secret(n%principals)+"\r\n"+api.HeaderDownloadID+": "+r.DownloadID+"\r\n"...)
	return append(buf, api.HeaderQueueTicket+": "+tickets.Sign(r.Key(), now.Add(-time.Minute), now)+"\r\n\r\n"...)
}

// askOnce polls for one session and keeps the whole answer.
func askOnce(addr string) (*answer, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(poll(nil, ticket.New(ticketKey), sessions/2, time.Now())); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if a.Status != http.StatusServiceUnavailable || resp.Header.Get(api.HeaderQueuePosition) == "" {
		return nil, fmt.Errorf("a poll was answered %s without a place: %s", resp.Status, a.Body)
	}
	delete(a.Header, "Date") // every server writes its own
	return a, nil
}

// load polls over all connections for a while and tells what one poll cost the server, in seconds of CPU.
func load(s *server, length time.Duration) (cost float64, polls int, err error) {
	before, err := cpu(s.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	var over atomic.Bool
	defer time.AfterFunc(length, func() { over.Store(true) }).Stop()
	counts, errs := make([]int, connections), make([]error, connections)
	var clients sync.WaitGroup
	for i := range connections {
		clients.Go(func() { counts[i], errs[i] = client(s.addr, &over) })
	}
	clients.Wait()
	after, err := cpu(s.cmd.Process.Pid)
	if err = errors.Join(append(errs, err)...); err != nil {
		return 0, 0, err
	}
	for _, n := range counts {
		polls += n
	}
	return (after - before) / float64(max(polls, 1)), polls, nil
}

// client polls for random sessions over one connection until it is over.
func client(addr string, over *atomic.Bool) (polls int, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in, tickets := bufio.NewReader(c), ticket.New(ticketKey)
	var out []byte
	for !over.Load() {
		// The first sessions have the seats.
		out = poll(out[:0], tickets, 1000+rand.IntN(sessions-1000), time.Now())
		if _, err := c.Write(out); err != nil {
			return polls, err
		}
		if err := busy(in); err != nil {
			return polls, err
		}
		polls++
	}
	return polls, nil
}

// busy reads one answer, which must be busy, and spends little on it.
func busy(in *bufio.Reader) error {
	length, first := 0, true
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 503 ")) {
			return fmt.Errorf("a poll was answered %s", bytes.TrimSpace(line))
		}
		first = false
		if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(rest))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			_, err := in.Discard(length)
			return err
		}
	}
}

// cpu is the processor time of a process so far, user and system, in seconds.
func cpu(pid int) (float64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // as clock_getcpuclockid names it
		return 0, err
	}
	return time.Duration(t.Nano()).Seconds(), nil
}

// figures are what a server says of itself, and the kernel of it.
type figures struct {
	ticks, tickSeconds float64
	waiting            float64
	resident, peak     float64 // bytes
}

func (s *server) look() (f figures, err error) {
	resp, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	if err := each(resp.Body, " ", func(name string, v float64) {
		switch {
		case name == "roadstead_download_tick_seconds_sum":
			f.tickSeconds = v
		case name == "roadstead_download_tick_seconds_count":
			f.ticks = v
		case strings.HasPrefix(name, "roadstead_download_sessions{") && strings.Contains(name, `state="waiting"`):
			f.waiting += v
		}
	}); err != nil {
		return f, err
	}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return f, err
	}
	defer status.Close()
	return f, each(status, ":", func(name string, v float64) {
		switch name {
		case "VmRSS":
			f.resident = v * 1024
		case "VmHWM":
			f.peak = v * 1024
		}
	})
}

// each reads lines of a name and a number; others are passed over.
func each(r io.Reader, separator string, found func(name string, value float64)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), separator)
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
				found(name, v)
			}
		}
	}
	return lines.Err()
}
