package sdk

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/roadstead/roadstead/api"
)

// depot is a server for uploads: paths by PUT, and tus.
type depot struct {
	files   map[string][]byte
	pending map[string][]byte
	metas   map[string]string
	lengths map[string]int
	next    int
	before  []func(w http.ResponseWriter, r *http.Request) bool // each may answer one PUT or PATCH instead
	loseTo  int                                                 // the answer to the last part number loseTo is lost
	lastOne int
}

func newDepot() *depot {
	return &depot{files: map[string][]byte{}, pending: map[string][]byte{}, metas: map[string]string{}, lengths: map[string]int{}}
}

func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if (r.Method == http.MethodPut || r.Method == http.MethodPatch) && len(d.before) > 0 {
		f := d.before[0]
		d.before = d.before[1:]
		if f != nil && f(w, r) {
			return
		}
	}
	switch path := r.URL.Path; {
	case r.Method == http.MethodHead && strings.HasPrefix(path, api.PathFiles):
		if b, ok := d.files[path]; ok {
			w.Header().Set("Repr-Digest", reprDigest(digestOf(b)))
			w.Header().Set("Content-Length", strconv.Itoa(len(b)))
			return
		}
		_ = problem(404, api.Problem{Code: "not_found"})(w, r)
	case r.Method == http.MethodPut:
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Repr-Digest") != reprDigest(digestOf(b)) || int64(len(b)) != r.ContentLength {
			_ = problem(422, api.Problem{Code: "integrity_mismatch", Message: "other bytes"})(w, r)
			return
		}
		d.files[path] = b
		w.WriteHeader(http.StatusCreated)
	default:
		d.tus(w, r)
	}
}

func (d *depot) tus(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	if r.Method == http.MethodPost {
		d.next++
		name = api.PathUploads + strconv.Itoa(d.next)
		d.pending[name], d.metas[name] = []byte{}, r.Header.Get("Upload-Metadata")
		d.lengths[name], _ = strconv.Atoi(r.Header.Get("Upload-Length"))
		w.Header().Set("Location", "http://called.otherwise"+name)
		w.WriteHeader(http.StatusCreated)
		return
	}
	have, ok := d.pending[name]
	if !ok {
		w.WriteHeader(http.StatusGone)
		return
	}
	if r.Method == http.MethodPatch {
		if r.Header.Get("Upload-Offset") != strconv.Itoa(len(have)) || r.Header.Get("Content-Type") != "application/offset+octet-stream" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		b, _ := io.ReadAll(r.Body)
		have = append(have, b...)
		d.pending[name] = have
		if len(have) == d.lengths[name] {
			meta := map[string]string{}
			for kv := range strings.SplitSeq(d.metas[name], ",") {
				k, v, _ := strings.Cut(kv, " ")
				raw, _ := base64.StdEncoding.DecodeString(v)
				meta[k] = string(raw)
			}
			d.files[api.PathFiles+meta["repository"]+"/"+meta["path"]] = have
			delete(d.pending, name)
			d.lastOne++
			if d.lastOne == d.loseTo {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}
	w.Header().Set("Upload-Offset", strconv.Itoa(len(have)))
}

func put(t *testing.T, d *depot, size int, edit func(*Upload)) (Stored, *log, *fake, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "local")
	if err := os.WriteFile(file, content(size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, l := &fake{other: d}, &log{}
	req := Upload{File: file, Repository: "repo", Path: "a/b.bin", PutBytes: 100, PartBytes: 1000, Events: l.add}
	if edit != nil {
		edit(&req)
	}
	stored, err := newClient(t, f, Retry{}).Upload(context.Background(), req)
	if err == nil && !bytes.Equal(d.files["/files/repo/a/b.bin"], content(size)) {
		t.Fatal("the server holds other bytes")
	}
	return stored, l, f, err
}

func TestUploadSmall(t *testing.T) {
	for _, size := range []int{0, 1, 100} {
		d := newDepot()
		stored, l, _, err := put(t, d, size, nil)
		if err != nil || stored.Digest != digestOf(content(size)) || stored.Unchanged || len(eventsOf[Done](l)) != 1 {
			t.Fatalf("%d bytes: %+v %v", size, stored, err)
		}
		if again, _, f, err := put(t, d, size, nil); err != nil || !again.Unchanged || len(f.methods) != 1 {
			t.Errorf("again: %+v %v, %v", again, f.methods, err)
		}
	}
}

func TestUploadWaitsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{50, 5500} {
			d := newDepot()
			answer := func(s step) func(http.ResponseWriter, *http.Request) bool {
				return func(w http.ResponseWriter, r *http.Request) bool { _ = s(w, r); return true }
			}
			for range 30 {
				d.before = append(d.before, answer(problem(503, api.Problem{Code: "busy"}, "Retry-After", "30")))
			}
			d.before = append(d.before, answer(plain(502)), answer(plain(504)))
			if size > 100 {
				d.before = append(d.before, nil, answer(plain(423)), answer(plain(409)))
			}
			_, l, _, err := put(t, d, size, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(eventsOf[Waiting](l)) != 30 {
				t.Errorf("%d waits", len(eventsOf[Waiting](l)))
			}
		}
	})
}

// Another process goes on where the server stands.
func TestUploadResumesAcrossProcesses(t *testing.T) {
	d, state := newDepot(), t.TempDir()
	full := func(w http.ResponseWriter, r *http.Request) bool {
		_ = problem(507, api.Problem{Code: "capacity_exceeded", Message: "no room"})(w, r)
		return true
	}
	d.before = []func(http.ResponseWriter, *http.Request) bool{nil, nil, full}
	_, _, _, err := put(t, d, 5500, func(u *Upload) { u.StateDir = state })
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != "capacity_exceeded" {
		t.Fatal(err)
	}
	_, l, f, err := put(t, d, 5500, func(u *Upload) { u.StateDir = state })
	if err != nil {
		t.Fatal(err)
	}
	if r := eventsOf[Resumed](l); len(r) != 1 || r[0].Offset != 2000 || strings.Count(fmt.Sprint(f.methods), "POST") != 0 {
		t.Errorf("resumed %v by %v", r, f.methods)
	}
	if left, _ := os.ReadDir(state); len(left) != 0 {
		t.Errorf("state left: %v", left)
	}
}

// An upload the server has forgotten begins anew; one whose last answer was lost is found done.
func TestUploadForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot()
		d.before = []func(http.ResponseWriter, *http.Request) bool{nil, func(w http.ResponseWriter, r *http.Request) bool {
			clear(d.pending)
			return false
		}}
		if _, l, _, err := put(t, d, 2500, nil); err != nil || len(eventsOf[Restarted](l)) != 1 {
			t.Errorf("%v, %v", err, l.events)
		}
		d = newDepot()
		d.loseTo = 1
		if _, l, f, err := put(t, d, 2500, nil); err != nil || len(eventsOf[Restarted](l)) != 0 || d.lastOne != 1 {
			t.Errorf("%v, %v", err, f.methods)
		}
	})
}

func TestUploadRefusals(t *testing.T) {
	d := newDepot()
	d.before = []func(http.ResponseWriter, *http.Request) bool{func(w http.ResponseWriter, r *http.Request) bool {
		_ = problem(422, api.Problem{Code: "integrity_mismatch", Message: "other bytes"})(w, r)
		return true
	}}
	if _, _, _, err := put(t, d, 50, nil); !errors.Is(err, ErrIntegrity) {
		t.Error(err)
	}
	if _, _, _, err := put(t, d, 50, func(u *Upload) { u.File += "-absent" }); !errors.Is(err, ErrLocal) {
		t.Error(err)
	}
	if _, _, _, err := put(t, d, 50, func(u *Upload) { u.File = filepath.Dir(u.File) }); !errors.Is(err, ErrLocal) {
		t.Error(err)
	}
	d.before = []func(http.ResponseWriter, *http.Request) bool{func(w http.ResponseWriter, r *http.Request) bool {
		_ = problem(422, api.Problem{Code: "integrity_mismatch"})(w, r)
		return true
	}}
	_, _, _, err := put(t, d, 50, func(u *Upload) {
		u.Events = func(e Event) {}
		old := d.before[0]
		d.before[0] = func(w http.ResponseWriter, r *http.Request) bool {
			_ = os.WriteFile(u.File, []byte("changed meanwhile"), 0o600)
			return old(w, r)
		}
	})
	if !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}
