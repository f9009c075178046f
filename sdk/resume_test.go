package sdk

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roadstead/roadstead/api"
)

// What a killed process leaves: the files as they are on the disk when range n is asked for.
func killedAt(t *testing.T, f *fake, n int) (dir string) {
	t.Helper()
	work, dir := t.TempDir(), t.TempDir()
	c := newClient(t, f, Retry{})
	f.script = append(f.script, repeat(n, nil)...)
	f.script = append(f.script, func(http.ResponseWriter, *http.Request) error {
		if err := os.CopyFS(dir, os.DirFS(work)); err != nil {
			t.Error(err)
		}
		return errors.New("killed")
	})
	c.retry.PerRequest = -1
	if _, err := c.Download(context.Background(), Download{URL: c.FileURL("r", "f"), File: filepath.Join(work, "f"), RangeBytes: 1000}); err == nil {
		t.Fatal("not killed")
	}
	f.requests, f.script = nil, nil
	return dir
}

// D-1.5, D-8.5: another process goes on with the same id and ticket, from what is vouched for.
func TestResumeAfterKill(t *testing.T) {
	f := &fake{object: content(5000), script: []step{queued("place", api.Wait{CheckInMillis: 1}, "1")}}
	var first http.Header
	dir := killedAt(t, f, 3)
	c := newClient(t, f, Retry{})
	cp, ok := loadCheckpoint(filepath.Join(dir, "f"), c.FileURL("r", "f"))
	if !ok || cp.Offset != 1000 || cp.Ticket != "place" {
		t.Fatalf("checkpoint %+v", cp)
	}
	l := &log{}
	if _, err := c.Download(t.Context(), Download{URL: c.FileURL("r", "f"), File: filepath.Join(dir, "f"), RangeBytes: 1000, Events: l.add}); err != nil {
		t.Fatal(err)
	}
	first = f.requests[0]
	if first.Get("Range") != "bytes=1000-1999" || first.Get(api.HeaderDownloadID) != cp.ID || first.Get(api.HeaderQueueTicket) != "place" || first.Get("If-Range") == "" {
		t.Errorf("first question %v", first)
	}
	if r := eventsOf[Resumed](l); len(r) != 1 || r[0].Offset != 1000 {
		t.Errorf("resumed %v", r)
	}
}

func TestResumeFromDoubtfulCheckpoints(t *testing.T) {
	url := "http://store.test/files/r/f"
	tests := []struct {
		name  string
		edit  func(cp *checkpoint, file string)
		first string // Range of the first request
	}{
		{"hash state of another length", func(cp *checkpoint, _ string) { cp.Hash[len(cp.Hash)-1]++ }, "bytes=1000-1999"},
		{"hash state is noise", func(cp *checkpoint, _ string) { cp.Hash = []byte("noise noise noise") }, "bytes=1000-1999"},
		{"no hash state", func(cp *checkpoint, _ string) { cp.Hash = nil }, "bytes=1000-1999"},
		{"file cut", func(_ *checkpoint, file string) { _ = os.Truncate(PartialFile(file), 600) }, "bytes=600-1599"},
		{"file gone", func(_ *checkpoint, file string) { _ = os.Remove(PartialFile(file)) }, "bytes=0-999"},
		{"another address", func(cp *checkpoint, _ string) { cp.URL += "x" }, "bytes=0-999"},
		{"offset past the size", func(cp *checkpoint, _ string) { cp.Offset = 9999 }, "bytes=0-999"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{object: content(5000)}
			file := filepath.Join(killedAt(t, f, 3), "f")
			cp, _ := loadCheckpoint(file, url)
			tt.edit(&cp, file)
			if err := cp.save(file); err != nil {
				t.Fatal(err)
			}
			if _, _, err := get(t, f, func(d *Download) { d.URL, d.File = url, file }); err != nil {
				t.Fatal(err)
			}
			if got := f.requests[0].Get("Range"); got != tt.first {
				t.Errorf("begins with %q, want %q", got, tt.first)
			}
		})
	}
	t.Run("fresh", func(t *testing.T) {
		f := &fake{object: content(5000)}
		file := filepath.Join(killedAt(t, f, 3), "f")
		if _, _, err := get(t, f, func(d *Download) { d.URL, d.File, d.Fresh = url, file, true }); err != nil || f.requests[0].Get("Range") != "bytes=0-999" {
			t.Errorf("%v, begins with %q", err, f.requests[0].Get("Range"))
		}
	})
}

// Cancelling a wait keeps the place for the next process.
func TestCancelKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, file := &fake{object: content(2000), script: []step{nil, queued("mine", api.Wait{}, "300")}}, filepath.Join(t.TempDir(), "f")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := newClient(t, f, Retry{})
		_, err := c.Download(ctx, Download{URL: c.FileURL("r", "f"), File: file, RangeBytes: 1000})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cp, ok := loadCheckpoint(file, c.FileURL("r", "f"))
		if !ok || cp.Ticket != "mine" || cp.Offset != 1000 {
			t.Errorf("checkpoint %+v", cp)
		}
		if info, err := os.Stat(checkpointFile(file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
}

func TestTwoDownloadsToOneFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	held, err := os.Create(PartialFile(file))
	if err != nil || !lock(held) {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if _, _, err := get(t, &fake{}, func(d *Download) { d.File = file }); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
}

// A process killed while it wrote its checkpoint leaves half a file; the next one takes it away.
func TestHalfACheckpointIsTakenAway(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), ".f.part.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newCheckpoint("http://s/f").save(file); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 || left[0].Name() != "f.part.json" {
		t.Errorf("%v %v", left, err)
	}
}
