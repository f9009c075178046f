package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/roadstead/roadstead/internal/app"
)

// server is the real server, inside this process.
type server struct {
	url, key string // key: the operator's
	cancel   context.CancelFunc
	ended    chan struct{} // closed when it has ended
	err      error         // why; to be read after ended
	app      *app.App
}

// start opens a server on a free port of the loopback, with a link of the plan's rate and the seats it wants.
func start(ctx context.Context, p plan, dir string) (*server, error) {
	cfg := app.Default()
	cfg.Data, cfg.Listen = dir, "127.0.0.1:0"
	cfg.RunnerSlots = 0               // it shows downloads
	cfg.DiskReserve, cfg.Drain = 0, 0 // nothing here is worth keeping, nobody is left when it stops
	cfg.MaxDownloadSessions, cfg.Bandwidth = p.Seats, p.Rate
	cfg.SessionMinBytes = min(cfg.SessionMinBytes, p.Size-1) // the demo's file is a large one, however small
	a, err := app.Open(ctx, cfg, app.Options{Version: p.Version})
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	key, err := os.ReadFile(a.OperatorKeyFile())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the operator's key: %w", err), a.Close())
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives its clients
	s := &server{url: a.URL(), key: strings.TrimSpace(string(key)), cancel: cancel, ended: make(chan struct{}), app: a}
	go func() {
		defer close(s.ended)
		s.err = a.Run(work)
	}()
	return s, nil
}

// guard is a context that ends with the server too: its clients need not find out by themselves.
func (s *server) guard(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-parent.Done():
		case <-s.ended:
			cancel(errors.Join(errors.New("the server stopped"), s.err))
		}
	}()
	return ctx
}

// stop ends the server and gives back all it took.
func (s *server) stop() error {
	s.cancel()
	<-s.ended
	return errors.Join(s.err, s.app.Close())
}
