package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// mode is one way of being served.
type mode struct {
	name   string
	server *server
	path   string
}

// load keeps clients busy with one mode and gives the server's CPU seconds per GiB.
func load(m mode, clients int, length time.Duration) (float64, error) {
	before, err := cpu(m.server.pids)
	if err != nil {
		return 0, err
	}
	var sent atomic.Int64
	failed := make(chan error, clients)
	sink := make([]byte, 4<<20) // shared by all: nobody writes it
	until := time.Now().Add(length)
	for range clients {
		go func() { failed <- client(m, until, sink, &sent) }()
	}
	var errs error
	for range clients {
		errs = errors.Join(errs, <-failed)
	}
	after, err := cpu(m.server.pids)
	if err := errors.Join(errs, err); err != nil {
		return 0, err
	}
	return (after - before) / (float64(sent.Load()) / (1 << 30)), nil
}

// client asks for random ranges on one connection.
func client(m mode, until time.Time, sink []byte, sent *atomic.Int64) error {
	conn, err := net.Dial("tcp", m.server.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 2048)
	for time.Now().Before(until) {
		from := rand.Int64N(fileSize/rangeSize) * rangeSize
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nRange: bytes=%d-%d\r\n\r\n", m.path, from, from+rangeSize-1); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil) //nolint:bodyclose // the body is discarded below, by the kernel
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusPartialContent || res.ContentLength != rangeSize {
			return fmt.Errorf("%s with %d bytes", res.Status, res.ContentLength)
		}
		early, err := in.Discard(in.Buffered())
		if err != nil {
			return err
		}
		if err := discard(raw, sink, rangeSize-early); err != nil {
			return err
		}
		sent.Add(rangeSize)
	}
	return nil
}

// discard lets the kernel drop the bytes (MSG_TRUNC), so that the client costs little; sink is only as long as they are.
func discard(raw syscall.RawConn, sink []byte, left int) error {
	for left > 0 {
		var n int
		var failure error
		err := raw.Read(func(fd uintptr) bool {
			n, _, failure = syscall.Recvfrom(int(fd), sink[:min(left, len(sink))], syscall.MSG_TRUNC|syscall.MSG_DONTWAIT)
			return failure != syscall.EAGAIN
		})
		switch {
		case err != nil:
			return err
		case failure != nil:
			return failure
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		left -= n
	}
	return nil
}
