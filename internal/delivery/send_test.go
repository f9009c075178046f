package delivery

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/governor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored makes a file of n random bytes and its content.
func stored(t testing.TB, n int) (Content, []byte) {
	t.Helper()
	data := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return Content{Name: "f", Digest: hex.EncodeToString(sum[:]), Size: int64(n), ModTime: modified,
		Open: func() (*os.File, error) { return os.Open(path) }}, data
}

// outcome is what the handler saw of one response.
type outcome struct {
	Result
	err   error
	told  int64
	still int
}

// handler serves c, as the files protocol does it, and tells each outcome. wrap may hide things of the writer.
func handler(t testing.TB, c Content, g *governor.Governor, idle time.Duration, wrap func(http.ResponseWriter) http.ResponseWriter) (http.Handler, <-chan outcome) {
	t.Helper()
	if g == nil {
		var err error
		if g, err = governor.New(governor.Config{}, clock.NewSystem()); err != nil {
			t.Fatal(err)
		}
	}
	out := make(chan outcome, 64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := Plan(r, c)
		if err != nil {
			t.Error(err)
			return
		}
		if wrap != nil {
			w = wrap(w)
		}
		f := g.Flow("p", [16]byte{})
		defer f.Close()
		var o outcome
		o.Result, o.err = Send(w, r, a, f, Options{Idle: idle, OnSent: func(n int64) {
			if o.told += n; n == 0 {
				o.still++
			}
		}})
		out <- o
		if errors.Is(o.err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
	}), out
}

func get(t *testing.T, client *http.Client, url string, headers ...string) (*http.Response, []byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// Every path of the bytes gives the bytes: kernel, buffers, TLS, HTTP/2, one connection after another.
func TestSend(t *testing.T) {
	c, data := stored(t, 3<<20+17)
	for name, start := range map[string]func(*httptest.Server){
		"plain": (*httptest.Server).Start,
		"tls":   (*httptest.Server).StartTLS,
		"h2":    func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			h, out := handler(t, c, nil, 30*time.Second, nil)
			s := httptest.NewUnstartedServer(h)
			s.Config.ConnContext = ConnContext
			start(s)
			defer s.Close()
			for _, span := range [][2]int{{0, len(data)}, {0, 1}, {100, 300 << 10}, {1, len(data)}, {5, 5 + 256<<10},
				{7, 8 + 256<<10}, {len(data) - 1, len(data)}, {1 << 20, 1<<20 + 4096}} {
				from, to := span[0], span[1]
				rng := "bytes=" + strconv.Itoa(from) + "-" + strconv.Itoa(to-1)
				if from == 0 && to == len(data) {
					rng = ""
				}
				_, body, err := get(t, s.Client(), s.URL, "Range", rng)
				if err != nil || !bytes.Equal(body, data[from:to]) {
					t.Fatalf("%d-%d: %d bytes, %v", from, to, len(body), err)
				}
				o := <-out
				if n := int64(to - from); o.err != nil || !o.Whole || o.Bytes != n || o.told != n || o.From != int64(from) || o.To != int64(to) {
					t.Errorf("%d-%d: %+v", from, to, o)
				}
			}
		})
	}
}

func TestSendSeveralRanges(t *testing.T) {
	c, data := stored(t, 1<<20)
	h, out := handler(t, c, nil, 30*time.Second, nil)
	s := httptest.NewServer(h)
	defer s.Close()
	for rng, joins := range map[string]bool{"bytes=0-9,500000-999999": false, "bytes=300000-399999,0-9,10-299999": true} {
		res, body, err := get(t, s.Client(), s.URL, "Range", rng)
		if err != nil || res.StatusCode != 206 || int64(len(body)) != res.ContentLength {
			t.Fatalf("%s: %d, %d of %d bytes, %v", rng, res.StatusCode, len(body), res.ContentLength, err)
		}
		_, p, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		mr := multipart.NewReader(bytes.NewReader(body), p["boundary"])
		parts, _ := parseRange(rng, c.Size)
		for _, want := range parts {
			got, err := mr.NextPart()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(got)
			if err != nil || !bytes.Equal(b, data[want.from:want.to]) || got.Header.Get("Content-Range") != contentRange(want, c.Size) {
				t.Errorf("%s: part %v: %d bytes, %v, %v", rng, want, len(b), got.Header, err)
			}
		}
		o := <-out
		if o.err != nil || !o.Whole || (o.To > 0) != joins || joins && o.To != 400000 {
			t.Errorf("%s: %+v", rng, o)
		}
	}
}

func TestSendWithoutBody(t *testing.T) {
	c, _ := stored(t, 100)
	c.Open = func() (*os.File, error) { t.Error("opened"); return nil, os.ErrNotExist }
	for _, r := range []*http.Request{
		httptest.NewRequest("HEAD", "/", nil),
		with(httptest.NewRequest("GET", "/", nil), "If-None-Match", ETag(c.Digest)),
		with(httptest.NewRequest("GET", "/", nil), "If-Match", `"x"`),
		with(httptest.NewRequest("GET", "/", nil), "Range", "bytes=100-"),
	} {
		a, err := Plan(r, c)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		res, err := Send(w, r, a, nil, Options{})
		if err != nil || res.Status != w.Code || w.Code != a.Status || w.Body.Len() > 0 || res.To != 0 {
			t.Errorf("%+v, %v, %d", res, err, w.Code)
		}
	}
}

func with(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func TestSendFaults(t *testing.T) {
	short, _ := stored(t, 1<<20)
	short.Size += 1 << 20
	gone, _ := stored(t, 10)
	gone.Open = func() (*os.File, error) { return nil, os.ErrNotExist }
	for _, c := range []struct {
		name  string
		c     Content
		rng   string
		begun bool
	}{
		{"short file", short, "", true},
		{"short file, small range", short, "bytes=1048570-1048580", false},
		{"short file, parts", short, "bytes=0-9,1048570-1048580", true},
		{"no file", gone, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, out := handler(t, c.c, nil, time.Minute, nil)
			s := httptest.NewServer(h)
			defer s.Close()
			_, body, err := get(t, s.Client(), s.URL, "Range", c.rng)
			o := <-out
			if o.err == nil || o.Whole || o.To != 0 || errors.Is(o.err, http.ErrAbortHandler) != c.begun {
				t.Errorf("%+v", o)
			}
			if c.begun && err == nil {
				t.Errorf("the client saw a clean end after %d bytes", len(body))
			}
		})
	}
}

// While the governor holds a response back, the session hears that it is alive; a closed client ends the wait.
func TestSendWaitsForTheGovernor(t *testing.T) {
	c, _ := stored(t, 1<<20)
	g, err := governor.New(governor.Config{Total: governor.MinRate}, clock.NewSystem())
	if err != nil {
		t.Fatal(err)
	}
	f := g.Flow("other", [16]byte{})
	defer f.Close()
	if err := f.Take(t.Context(), 1<<30, nil); err != nil {
		t.Fatal(err)
	}
	h, out := handler(t, c, g, time.Second, nil)
	s := httptest.NewServer(h)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), governor.StillEvery*3/2)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client().Do(r); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // no answer comes
		t.Fatal(err)
	}
	if o := <-out; o.still == 0 || o.Bytes != 0 || !errors.Is(o.err, context.Canceled) || errors.Is(o.err, http.ErrAbortHandler) {
		t.Errorf("%+v", o)
	}
}

// A reader that takes nothing is cut after Idle (D-2.8); on both paths.
func TestStalledReader(t *testing.T) {
	c, _ := stored(t, 32<<20)
	for name, wrap := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, out := handler(t, c, nil, 400*time.Millisecond, wrap)
			s := httptest.NewServer(h)
			defer s.Close()
			conn := ask(t, s, 64<<10)
			defer conn.Close()
			o := <-out
			if o.Whole || !errors.Is(o.err, os.ErrDeadlineExceeded) || !errors.Is(o.err, http.ErrAbortHandler) || o.Bytes >= c.Size || o.told != o.Bytes {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A reader to whom a slice takes longer than the sender looks is not a stalled one: it gets everything.
func TestSlowReader(t *testing.T) {
	c, data := stored(t, 4<<20)
	for name, wrap := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, out := handler(t, c, nil, 400*time.Millisecond, wrap)
			s := httptest.NewUnstartedServer(h)
			s.Listener = narrow{s.Listener}
			s.Start()
			defer s.Close()
			conn := ask(t, s, 64<<10)
			defer conn.Close()
			pause := time.NewTicker(20 * time.Millisecond)
			defer pause.Stop()
			slow := bufio.NewReaderSize(readerFunc(func(p []byte) (int, error) {
				<-pause.C
				return conn.Read(p)
			}), 64<<10)
			res, err := http.ReadResponse(slow, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || !bytes.Equal(body, data) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
			if o := <-out; !o.Whole || o.err != nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

// narrow gives connections little room, so that the reader's pace is seen at once.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(32 << 10)
	}
	return c, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var paths = map[string]func(http.ResponseWriter) http.ResponseWriter{
	"kernel":  nil,
	"buffers": func(w http.ResponseWriter) http.ResponseWriter { return hiding{w} },
}

// hiding is a writer as middleware makes it: deadlines go through, ReadFrom is lost.
type hiding struct{ http.ResponseWriter }

func (h hiding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// ask sends a GET on a connection that holds about so many bytes, and reads nothing.
func ask(t *testing.T, s *httptest.Server, holds int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(holds); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}
