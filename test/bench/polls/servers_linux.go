package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/delivery"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve"
	"github.com/roadstead/roadstead/internal/serve/files"
	"github.com/roadstead/roadstead/internal/ticket"
)

const linkRate = 125 << 20 // bytes per second

// ticketKey signs the tickets of this run: the clients send the ticket of each session, as ours do.
var ticketKey = []byte("a key for one run of a benchmark")

func principal(n int) identity.Principal {
	return identity.Principal{ID: "principal-" + strconv.Itoa(n), Kind: identity.Service, Tenant: "default", Ceiling: class.Class(n % class.Count)}
}

// object is the one file that everybody wants.
func object() artifacts.File {
	return artifacts.File{
		Repository: "load", Path: "file.bin", Revision: 1, Size: 8 << 30, MediaType: "application/octet-stream",
		Digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", CreatedAt: time.Unix(1_790_000_000, 0).UTC(),
	}
}

// request is the n-th session's, as the handler makes it.
func request(n int) downloads.Request {
	f := object()
	return downloads.Request{
		Principal: principal(n % principals), ObjectID: f.RevisionID(), Size: f.Size, DownloadID: "download-" + strconv.Itoa(n), To: f.Size,
	}
}

// serveReal fills the real queue and serves the real handlers over it.
func serveReal(level string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	conf := downloads.Default(16)
	conf.Policy.MaxSessions, conf.Policy.LinkRate = sessions, linkRate
	conf.Policy.Idle = time.Hour // those with a seat don't move here
	ctx := context.Background()
	queue, err := downloads.New(ctx, conf, clock.NewSystem(), unmarked{}, ticket.New(ticketKey))
	if err != nil {
		return err
	}
	go func() { _ = queue.Run(ctx) }() // it ends with the process
	link, err := governor.New(governor.Config{Total: linkRate}, clock.NewSystem())
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(queue.Collectors()...)
	auth := keys{}
	for n := range principals {
		p := principal(n)
		auth[secret(n)] = p
	}
	handler, err := serve.New(serve.Config{Version: "bench"}, serve.Services{
		Auth: auth, Files: files.New(queue.Idle, oneFile{object()}, queue, link), Uploads: http.NotFoundHandler(),
		Metrics: metrics, Log: slog.New(slog.NewJSONHandler(null, &slog.HandlerOptions{Level: l})),
	})
	if err != nil {
		return err
	}
	if err := fill(ctx, queue); err != nil {
		return err
	}
	return listen(handler)
}

// fill lets every session arrive and ask once more after the next tick, as told: it knows its place then, and is
// expected within minutes.
func fill(ctx context.Context, queue *downloads.Service) error {
	seated := map[int]bool{}
	for round := range 2 {
		for n := range sessions {
			if seated[n] {
				continue
			}
			_, err := queue.Admit(ctx, request(n))
			if _, waits := errors.AsType[*downloads.Waiting](err); !waits && err != nil {
				return fmt.Errorf("session %d: %w", n, err)
			}
			if err == nil {
				seated[n] = true // its pass stays open
			}
		}
		if round == 0 {
			time.Sleep(2 * session.TickEvery)
		}
	}
	return nil
}

// serveBare answers every request with the bytes given.
func serveBare() error {
	var a answer
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		return err
	}
	return listen(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for name, values := range a.Header {
			h[name] = values
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body) // a client that left does not want to know
	}))
}

// listen serves as the product does, and prints the address.
func listen(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnContext: delivery.ConnContext}
	return s.Serve(l)
}

// unmarked is a database without a mark.
type unmarked struct{}

func (unmarked) QueueMark(context.Context) (bool, error)  { return false, nil }
func (unmarked) SetQueueMark(context.Context, bool) error { return nil }

func secret(n int) string { return "rsk_bench_" + strconv.Itoa(n) }

// keys are the accounts.
type keys map[string]identity.Principal

// Authenticate implements serve.Authenticator.
func (k keys) Authenticate(_ context.Context, secret string) (identity.Principal, error) {
	if p, ok := k[secret]; ok {
		return p, nil
	}
	return identity.Principal{}, fault.New(fault.Unauthorized, "unknown key")
}

// oneFile is a store with nothing else in it.
type oneFile struct{ file artifacts.File }

func (s oneFile) Stat(context.Context, identity.Principal, string, string) (artifacts.File, error) {
	return s.file, nil
}

func (s oneFile) StatDigest(context.Context, identity.Principal, string, string) (artifacts.File, error) {
	return s.file, nil
}

func (s oneFile) Open(context.Context, artifacts.File) (*os.File, error) {
	return nil, fault.Missing("file")
}

func (s oneFile) Put(context.Context, identity.Principal, string, string, string, io.Reader, artifacts.PutOptions) (artifacts.File, bool, error) {
	return artifacts.File{}, false, fault.Missing("file")
}

func (s oneFile) Delete(context.Context, identity.Principal, string, string, artifacts.PutOptions) error {
	return fault.Missing("file")
}

func (s oneFile) ResolveLink(context.Context, string) (identity.Principal, artifacts.File, error) {
	return identity.Principal{}, artifacts.File{}, fault.Missing("link")
}
