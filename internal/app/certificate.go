package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// certificate is the server's certificate, read again when its files change.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
	stamp             string // of the files that current was read from; used by one goroutine
}

func openCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.reload()
}

// reload reads the files; when they make no pair the old certificate stays.
func (c *certificate) reload() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading the TLS certificate: %w", err)
	}
	c.current.Store(&pair)
	return nil
}

// config speaks HTTP/1.1 only: one response per connection is what the queue and the kernel's file path are made for.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}

// watch reloads when a file changes, and whenever asked.
func (c *certificate) watch(ctx context.Context, every time.Duration, asked <-chan struct{}, log *slog.Logger) {
	c.stamp = c.fileStamp()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		case <-tick.C:
			if c.fileStamp() == c.stamp {
				continue
			}
		}
		stamp := c.fileStamp()
		if err := c.reload(); err != nil {
			log.Error("the TLS certificate stays as it was", "cause", err.Error())
			continue // tried again at the next tick: a renewal may have written one file of two
		}
		c.stamp = stamp
		log.Info("read the TLS certificate anew")
	}
}

// fileStamp changes when either file does.
func (c *certificate) fileStamp() string {
	s := ""
	for _, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s += fmt.Sprintf("%d %d;", info.ModTime().UnixNano(), info.Size())
		}
	}
	return s
}
