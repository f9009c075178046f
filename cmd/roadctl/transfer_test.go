package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

func queuedAt(place int, in, check time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := time.Now().UTC()
		start := now.Add(in)
		refuse(503, api.Problem{Code: "busy", Reason: api.ReasonQueued, Queue: &api.Wait{Known: place > 0, Position: place, StartsAt: &start,
			CheckAt: now.Add(check), CheckInMillis: check.Milliseconds(), Class: "bulk"}}, "Retry-After", "300", api.HeaderQueueTicket, "t")(w, r)
	}
}

// D-11.1: the place and the start, then the bytes; in a log of plain lines.
func TestDownloadTellsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, body := t.TempDir(), bytes.Repeat([]byte("roadstead "), 1000)
		code, stdout, stderr := command{args: []string{"download", "fleet/fw.img", "-f", dir + "/", "--class", "bulk"}, now: func() time.Time { return time.Now().UTC() },
			serve: inTurn(queuedAt(0, 0, 2*time.Second), queuedAt(312, 47*time.Minute, 5*time.Minute), queuedAt(290, 42*time.Minute, 5*time.Minute), object(body))}.run(t)
		if code != 0 {
			t.Fatalf("code %d\n%s", code, stderr)
		}
		if want := fmt.Sprintf("%s/fw.img  10.0 kB  sha256:%x  verified\n", dir, sha256.Sum256(body)); stdout != want {
			t.Errorf("stdout %q, want %q", stdout, want)
		}
		lines := strings.Split(stderr, "\n")
		if lines[0] != "queue: place not known yet, asking again in 2 s" || lines[1] != "queue: 312th, starts about 00:47 (in 47 min)" ||
			!strings.HasPrefix(lines[2], "queue: 290th, starts about 00:47 (in 42 min)") || !strings.HasPrefix(lines[3], "done: fw.img, 10.0 kB in ") {
			t.Errorf("stderr:\n%s", stderr)
		}
	})
}

func TestDownloadEnds(t *testing.T) {
	waitingForHours := queuedAt(9, 5*time.Hour, 5*time.Minute)
	tests := []struct {
		name  string
		args  string
		serve http.HandlerFunc
		code  int
		want  string
	}{
		{"deadline", "--not-after 02:00", waitingForHours, 4, "to do: run again with a later --not-after"},
		{"wait limit", "--wait-limit 20m", waitingForHours, 4, "to do: run again with a longer --wait-limit"},
		{"not found", "", refuse(404, api.Problem{Code: "not_found", Message: "file not found"}), 1, "error: file not found"},
		{"wrong bytes", "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"%064d"`, 7))
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("something"))
		}, 5, "they were discarded"},
		{"another digest", "--digest " + strings.Repeat("ab", 32), object([]byte("x")), 6, "the server has sha256:"},
		{"gone away", "", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }, 4, "gave up after 5 retries"},
		{"no folder", "-f /nonexistent/dir/f", object(nil), 7, "open the partial file"},
		{"bad class", "--class first", nil, 2, "--class must be"},
		{"bad digest", "--digest xyz", nil, 2, "64 hex digits"},
		{"bad window", "--not-before 2026-01-02T00:00:00Z --not-after 2026-01-01T00:00:00Z", nil, 2, "lies before"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				args := append([]string{"download", "fleet/f", "-f", filepath.Join(t.TempDir(), "f")}, strings.Fields(tt.args)...)
				code, stdout, stderr := command{args: args, serve: tt.serve, now: func() time.Time { return time.Now().UTC() }}.run(t)
				if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
					t.Errorf("code %d, want %d\n%s%s", code, tt.code, stdout, stderr)
				}
			})
		})
	}
}

// A night's window is one night, whenever it is asked for.
func TestDownloadWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Time
		serve := func(w http.ResponseWriter, r *http.Request) { asked = time.Now().UTC(); object([]byte("x"))(w, r) }
		code, _, stderr := command{args: []string{"download", "r/f", "-f", filepath.Join(t.TempDir(), "f"), "--not-before", "22:00", "--not-after", "06:00"},
			serve: serve, now: func() time.Time { return time.Now().UTC() }}.run(t)
		if code != 0 || asked.Format("2 15:04:05") != "1 22:00:00" || !strings.HasPrefix(stderr, "asks not before 22:00 (in 22 h)") {
			t.Errorf("code %d, asked %v\n%s", code, asked, stderr)
		}
	})
}

// A link needs no settings, is shown no key, and gives the file its name.
func TestDownloadLink(t *testing.T) {
	dir := t.TempDir()
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.Path != "/l/token" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.Header().Set("Content-Disposition", `attachment; filename="../fw 7.img"`)
		object([]byte("x"))(w, r)
	}
	code, _, stderr := command{args: []string{"download", "https://far.example/l/token", "-f", dir}, serve: serve, env: map[string]string{"ROADSTEAD_API_KEY": "rsk"}}.run(t)
	if _, err := os.Stat(filepath.Join(dir, "fw 7.img")); code != 0 || err != nil {
		t.Errorf("code %d %v\n%s", code, err, stderr)
	}
}

func TestUploadCommand(t *testing.T) {
	src, files := t.TempDir(), map[string]string{}
	for name, text := range map[string]string{"a.txt": "aaa", "sub/b.txt": "bb"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o777), os.WriteFile(filepath.Join(src, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(src, "link")); err != nil {
		t.Fatal(err)
	}
	fail := false
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, there := files[r.URL.Path]
		switch {
		case r.Method == http.MethodHead && there:
			object([]byte(body))(w, r)
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		case fail && strings.HasSuffix(r.URL.Path, "b.txt"):
			refuse(507, api.Problem{Code: "capacity_exceeded", Message: "no room"})(w, r)
		default:
			files[r.URL.Path] = readAll(t, r.Body)
		}
	}
	fail = true
	code, stdout, stderr := command{args: []string{"upload", src, "fleet/x/"}, serve: serve}.run(t)
	if code != 8 || !strings.Contains(stderr, "kept: 1 of 2 files are uploaded") || !strings.Contains(stdout, "fleet/x/a.txt  3 B") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	fail = false
	code, stdout, stderr = command{args: []string{"upload", src, "fleet/x"}, serve: serve}.run(t)
	if code != 0 || !strings.Contains(stdout, "unchanged") || !strings.Contains(stdout, "fleet/x/sub/b.txt  2 B") || !strings.Contains(stderr, "skipped: ") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	a := filepath.Join(src, "a.txt")
	for target, want := range map[string]string{"fleet": "/files/fleet/a.txt", "fleet/dir/": "/files/fleet/dir/a.txt", "fleet/other.name": "/files/fleet/other.name"} {
		clear(files)
		if code, _, stderr := (command{args: []string{"upload", a, target}, serve: serve}).run(t); code != 0 || files[want] != "aaa" {
			t.Errorf("%s: code %d, %v\n%s", target, code, files, stderr)
		}
	}
	if code, _, _ := (command{args: []string{"upload", a, a, "fleet"}, serve: serve}).run(t); code != 2 {
		t.Errorf("two files of one name: code %d", code)
	}
	if code, _, _ := (command{args: []string{"upload", a + "x", "fleet"}, serve: serve}).run(t); code != 7 {
		t.Errorf("no such file: code %d", code)
	}
}

func TestInterruptKeepsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		time.AfterFunc(time.Minute, func() { cancel(errInterrupted) })
		code, stdout, stderr := command{ctx: ctx, args: []string{"download", "r/f", "-q", "-f", filepath.Join(t.TempDir(), "f")}, serve: queuedAt(3, time.Hour, 5*time.Minute)}.run(t)
		if code != 130 || stdout != "" || stderr != "interrupted\nkept: your place in the queue; to go on, run the same command again\n" {
			t.Errorf("code %d\n%s%s", code, stdout, stderr)
		}
	})
}

// The real program, killed: what it had stays, and the next run goes on from there with the same place (D-1.5, D-8.5).
func TestKilledProgramResumes(t *testing.T) {
	for _, sig := range []os.Signal{os.Kill, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			body := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16)
			third, ids := make(chan struct{}), &sync.Map{}
			var ranges []string
			var mu sync.Mutex
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				ranges = append(ranges, r.Header.Get("Range"))
				n := len(ranges)
				mu.Unlock()
				ids.Store(r.Header.Get(api.HeaderDownloadID), true)
				w.Header().Set(api.HeaderQueueTicket, fmt.Sprint("ticket-", n))
				if n == 3 {
					close(third)
					<-r.Context().Done()
					return
				}
				object(body)(w, r)
			}))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "f")
			program := func() (*exec.Cmd, *bytes.Buffer) {
				cmd, errs := exec.Command(os.Args[0], "download", server.URL+"/files/r/f", "-f", file), &bytes.Buffer{}
				cmd.Env, cmd.Stderr, cmd.Stdout = append(os.Environ(), "ROADCTL_TEST_MAIN=1", "HOME="+t.TempDir()), errs, io.Discard
				return cmd, errs
			}
			first, errs := program()
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			<-third
			_ = first.Process.Signal(sig)
			_ = first.Wait()
			if sig == syscall.SIGINT && (first.ProcessState.ExitCode() != 130 || !strings.Contains(errs.String(), "interrupted\nkept: 16.8 MB in "+file+".part; to go on, run the same command again")) {
				t.Errorf("code %d\n%s", first.ProcessState.ExitCode(), errs)
			}
			second, errs := program()
			if err := second.Run(); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			n := 0
			ids.Range(func(any, any) bool { n++; return true })
			if n != 1 || !strings.Contains(errs.String(), "resuming: ") || ranges[3] == "bytes=0-8388607" {
				t.Errorf("%d ids, ranges %v\n%s", n, ranges, errs)
			}
		})
	}
}
