package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal and gives its two ends.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// hidden reports whether a terminal doesn't show what is typed.
func hidden(terminal *os.File) (bool, error) {
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO == 0, err
}

// whenWritten calls at each write.
type whenWritten func()

func (f whenWritten) Write(p []byte) (int, error) { f(); return len(p), nil }

// Ctrl-C ends the question for a key, and leaves a terminal that shows what is typed.
func TestInterruptedAtTheKey(t *testing.T) {
	person, program := openTerminal(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	errs, watched := &strings.Builder{}, make(chan struct{})
	a := &app{in: program, inTTY: true, out: errs, err: whenWritten(sync.OnceFunc(func() {
		go func() {
			defer close(watched)
			for hides, err := hidden(program); !hides && err == nil; hides, err = hidden(program) {
				runtime.Gosched() // until the question is put
			}
			cancel(errInterrupted)
		}()
	})), env: func(string) string { return "" }}
	if code := run(ctx, []string{"login", "http://127.0.0.1:9"}, a); code != exitInterrupt {
		t.Errorf("code %d", code)
	}
	<-watched
	if hides, err := hidden(program); hides || err != nil {
		t.Errorf("the terminal still hides what is typed: %v", err)
	}
	if _, err := person.WriteString("\n"); err != nil { // lets the reader go
		t.Error(err)
	}
	for _, f := range []*os.File{person, program} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestKeyIsTypedHidden(t *testing.T) {
	person, program := openTerminal(t)
	a := &app{in: program, inTTY: true, err: whenWritten(sync.OnceFunc(func() {
		if _, err := person.WriteString("rsk_typed\n"); err != nil {
			t.Error(err)
		}
	}))}
	if key, err := a.askKey(t.Context()); key != "rsk_typed" || err != nil {
		t.Errorf("%q %v", key, err)
	}
	for _, f := range []*os.File{person, program} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
