package app

import (
	"context"
	"net/http"
	"sync"
)

// flights counts the requests being answered, so that a stopping server knows when it may go.
type flights struct {
	mu    sync.Mutex
	count int
	quiet chan struct{} // closed when the count falls to zero; nil while nobody waits
}

func (f *flights) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.add(1)
		defer f.add(-1)
		next.ServeHTTP(w, r)
	})
}

func (f *flights) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count += n
	if f.count == 0 && f.quiet != nil {
		close(f.quiet)
		f.quiet = nil
	}
}

// wait returns when no request is being answered, or with the context's error.
func (f *flights) wait(ctx context.Context) error {
	f.mu.Lock()
	if f.count == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.quiet == nil {
		f.quiet = make(chan struct{})
	}
	quiet := f.quiet
	f.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
