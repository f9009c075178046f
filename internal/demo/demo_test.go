package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tiny is a run of a moment: 6 clients, 2 seats, 50 kB each.
func tiny(t *testing.T) Config {
	return Config{Clients: 6, Seats: 2, Rate: 400_000, Size: 50_000, Seed: 7, Version: "test", TempDir: t.TempDir()}
}

// nothingLeft checks that the run's folder is gone.
func nothingLeft(t *testing.T, cfg Config) {
	t.Helper()
	left, err := os.ReadDir(cfg.TempDir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestRunOffATerminal(t *testing.T) {
	cfg := tiny(t)
	var out bytes.Buffer
	if err := Run(t.Context(), cfg, Screen{Out: &out}); err != nil {
		t.Fatalf("%v after:\n%s", err, out.String())
	}
	for _, want := range []string{
		"6 clients want a file of 50 kB", "link limited to 400 kB/s", "ok server on http://127.0.0.1:", "1 person, 5 service accounts",
		"6 of 6 clients have the file", "ROADSTEAD   EVEN SHARING", "errors                       0", "at the ", "What it means: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("escapes off a terminal: %q", out.String())
	}
	nothingLeft(t, cfg)
}

func TestRunOnATerminal(t *testing.T) {
	cfg := tiny(t)
	cfg.File, cfg.Size = filepath.Join(t.TempDir(), "a file.iso"), 0
	content := bytes.Repeat([]byte("0123456789abcdef"), 2000)
	if err := os.WriteFile(cfg.File, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	screen := Screen{Out: &out, Size: func() (int, int) { return 72, 20 }, Unicode: true, Color: true}
	if err := Run(t.Context(), cfg, screen); err != nil {
		t.Fatalf("%v after:\n%s", err, out.String())
	}
	sum := sha256.Sum256(content)
	text := out.String()
	for _, want := range []string{`"a file.iso" (32 kB)`, "sha256:" + hex.EncodeToString(sum[:6]), "\x1b[?25l", "━", "\x1b[32mdone"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if strings.LastIndex(text, "\x1b[?25h") < strings.LastIndex(text, "\x1b[?25l") {
		t.Error("the cursor stays hidden")
	}
	// The last frame holds every client, in no more columns than there are.
	frame := text[strings.LastIndex(text, "\x1b[J"):]
	if !strings.Contains(frame, "6 of 6 clients have the file") {
		t.Errorf("the summary is not below the last frame: %q", frame)
	}
	nothingLeft(t, cfg)
}

// stopper is a writer that calls do as soon as a text has passed.
type stopper struct {
	seen bytes.Buffer
	text string
	do   func()
	once sync.Once
	err  error // of every write after that
}

func (s *stopper) Write(p []byte) (int, error) {
	n, _ := s.seen.Write(p)
	if strings.Contains(s.seen.String(), s.text) {
		s.once.Do(s.do)
		return n, s.err
	}
	return n, nil
}

// Ctrl-C at any moment leaves nothing behind and is no failure of a client.
func TestStopLeavesNothing(t *testing.T) {
	for _, moment := range []string{"Roadstead demo", "server on", "stored", "accounts with", "loading"} {
		t.Run(moment, func(t *testing.T) {
			cfg := tiny(t)
			cfg.Rate, cfg.Size = 100_000, 5_000_000 // a run that would take minutes
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &stopper{text: moment, do: cancel}
			began := time.Now()
			err := Run(ctx, cfg, Screen{Out: out})
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnfinished) {
				t.Errorf("error %v", err)
			}
			if text := out.seen.String(); !strings.Contains(text, "Stopped.") || strings.Contains(text, "failed") {
				t.Errorf("says:\n%s", text)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("stopping took %v", took)
			}
			nothingLeft(t, cfg)
		})
	}
}

// A pipe that is closed ends the run too.
func TestClosedOutputEndsTheRun(t *testing.T) {
	cfg := tiny(t)
	cfg.Rate, cfg.Size = 100_000, 5_000_000
	out := &stopper{text: "loading", do: func() {}, err: os.ErrClosed}
	if err := Run(t.Context(), cfg, Screen{Out: out}); !errors.Is(err, os.ErrClosed) || err.Error() != os.ErrClosed.Error() {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, cfg)
}

func TestDecide(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n int) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	some, empty := write("some", 4_500_000), write("empty", 0)
	good := []struct {
		cfg        Config
		rate, size int64
		length     time.Duration
		chosen     string
	}{
		{Config{}, 16e6, 30e6, 45 * time.Second, "file"},
		{Config{Quick: true}, 16e6, 12e6, 9 * time.Second, "file"},
		{Config{Clients: 10}, 16e6, 72e6, 45 * time.Second, "file"},
		{Config{Rate: 32e6}, 32e6, 60e6, 45 * time.Second, "file"},
		{Config{Size: 15e6}, 8e6, 15e6, 45 * time.Second, "link"},
		{Config{Size: 15e6, Rate: 1e6}, 1e6, 15e6, 6 * time.Minute, ""},
		{Config{File: some}, 2_400_000, 4_500_000, 45 * time.Second, "link"},
		{Config{Size: 30e9}, fastestRate, 30e9, 2 * time.Hour, "link"}, // never so fast that the machine is what is scarce
	}
	for i, c := range good {
		p, err := c.cfg.decide()
		if err != nil || p.Rate != c.rate || p.Size != c.size || p.length.Round(time.Second) != c.length || p.chosen != c.chosen {
			t.Errorf("case %d: %v at %v, %v, chosen %q, error %v", i, p.Size, p.Rate, p.length, p.chosen, err)
		}
	}
	bad := map[string]Config{
		"clients": {Clients: 501}, "seats": {Seats: 65}, "rate": {Rate: 10}, "size": {Size: -1},
		"FILE: stat": {File: filepath.Join(dir, "gone")}, "FILE: " + empty: {File: empty}, "FILE: " + dir: {File: dir}, "has its own": {File: some, Size: 7},
	}
	for want, cfg := range bad {
		if _, err := cfg.decide(); !fault.Is(err, fault.InvalidInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

func TestMembers(t *testing.T) {
	counts, names := map[string]int{}, map[string]bool{}
	for _, m := range members(mostClients) {
		counts[m.class.String()]++
		names[m.name] = true
	}
	if len(names) != mostClients {
		t.Errorf("%d names for %d clients", len(names), mostClients)
	}
	for class, want := range map[string]int{"interactive": 63, "release": 125, "bulk": 187, "background": 125} {
		if n := counts[class]; n != want {
			t.Errorf("%d of class %s, want %d", n, class, want)
		}
	}
}
