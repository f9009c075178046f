package delivery

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

var modified = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func sized(n int64) Content {
	return Content{Name: "f", Digest: digest, MediaType: "text/plain", Size: n, ModTime: modified}
}

func plan(t *testing.T, method string, c Content, headers ...string) *Answer {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	a, err := Plan(r, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Only 200 and 206 to a GET have a body, hence a seat (D-2.6); conditions come before ranges (D-12.2).
func TestPlan(t *testing.T) {
	etag, date := ETag(digest), modified.Format(http.TimeFormat)
	older := modified.Add(-time.Hour).Format(http.TimeFormat)
	cases := []struct {
		name    string
		method  string
		size    int64
		headers []string
		status  int
		span    Span
	}{
		{"whole", "GET", 100, nil, 200, Span{To: 100}},
		{"head", "HEAD", 100, nil, 200, Span{}},
		{"head ignores range", "HEAD", 100, []string{"Range", "bytes=0-1"}, 200, Span{}},
		{"range", "GET", 100, []string{"Range", "bytes=10-19"}, 206, Span{From: 10, To: 20}},
		{"open range", "GET", 100, []string{"Range", "bytes=10-"}, 206, Span{From: 10, To: 100}},
		{"suffix", "GET", 100, []string{"Range", "bytes=-10"}, 206, Span{From: 90, To: 100, Tail: true}},
		{"bounded to the end", "GET", 100, []string{"Range", "bytes=50-99"}, 206, Span{From: 50, To: 100, Tail: true}},
		{"several", "GET", 100, []string{"Range", "bytes=10-19,50-59"}, 206, Span{From: 10, To: 60, Multi: true}},
		{"several at the end", "GET", 100, []string{"Range", "bytes=-1,50-99"}, 206, Span{From: 50, To: 100, Tail: true, Multi: true}},
		{"more than the object", "GET", 100, []string{"Range", "bytes=0-99,1-99"}, 200, Span{To: 100}},
		{"at the end", "GET", 100, []string{"Range", "bytes=100-"}, 416, Span{}},
		{"at the end, bounded", "GET", 100, []string{"Range", "bytes=100-100"}, 416, Span{}},
		{"malformed", "GET", 100, []string{"Range", "bytes=x"}, 416, Span{}},
		{"empty", "GET", 0, nil, 200, Span{}},
		{"empty, range", "GET", 0, []string{"Range", "bytes=0-"}, 200, Span{}},
		{"empty, suffix", "GET", 0, []string{"Range", "bytes=-5"}, 200, Span{}},
		{"not modified", "GET", 100, []string{"If-None-Match", etag}, 304, Span{}},
		{"not modified, weak", "GET", 100, []string{"If-None-Match", `"a", W/` + etag}, 304, Span{}},
		{"not modified, range", "GET", 100, []string{"If-None-Match", etag, "Range", "bytes=x"}, 304, Span{}},
		{"not modified since", "GET", 100, []string{"If-Modified-Since", date}, 304, Span{}},
		{"head not modified", "HEAD", 100, []string{"If-None-Match", "*"}, 304, Span{}},
		{"modified", "GET", 100, []string{"If-None-Match", `"other"`, "If-Modified-Since", date}, 200, Span{To: 100}},
		{"no match", "GET", 100, []string{"If-Match", `"other"`}, 412, Span{}},
		{"no match before range", "GET", 100, []string{"If-Match", `"other"`, "Range", "bytes=100-"}, 412, Span{}},
		{"match", "GET", 100, []string{"If-Match", etag}, 200, Span{To: 100}},
		{"weak never matches", "GET", 100, []string{"If-Match", "W/" + etag}, 412, Span{}},
		{"changed since", "GET", 100, []string{"If-Unmodified-Since", older}, 412, Span{}},
		{"if-range", "GET", 100, []string{"If-Range", etag, "Range", "bytes=1-"}, 206, Span{From: 1, To: 100}},
		{"if-range fails", "GET", 100, []string{"If-Range", `"other"`, "Range", "bytes=1-"}, 200, Span{To: 100}},
		{"if-range fails, tail", "GET", 100, []string{"If-Range", `"other"`, "Range", "bytes=-5"}, 200, Span{To: 100}},
		{"if-range fails, beyond", "GET", 100, []string{"If-Range", `"other"`, "Range", "bytes=100-"}, 200, Span{To: 100}},
		{"if-range date", "GET", 100, []string{"If-Range", date, "Range", "bytes=1-"}, 206, Span{From: 1, To: 100}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := plan(t, c.method, sized(c.size), c.headers...)
			body := c.method == "GET" && c.status < 300
			if a.Status != c.status || a.Span != c.span || a.Body != body {
				t.Errorf("%d, body %v, %+v; want %d, %v, %+v", a.Status, a.Body, a.Span, c.status, body, c.span)
			}
		})
	}
}

func TestPlanHeaders(t *testing.T) {
	const repr = "sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:"
	cases := []struct {
		answer *Answer
		want   map[string]string // an empty value: absent
	}{
		{plan(t, "GET", sized(100)), map[string]string{"Etag": `"sha256:` + digest + `"`, "Repr-Digest": repr,
			"Accept-Ranges": "bytes", "Content-Length": "100", "Content-Type": "text/plain", "Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}},
		{plan(t, "HEAD", sized(100)), map[string]string{"Repr-Digest": repr, "Content-Length": "100"}},
		{plan(t, "GET", sized(0)), map[string]string{"Content-Length": "0"}},
		{plan(t, "GET", sized(100), "Range", "bytes=1-2"), map[string]string{"Repr-Digest": repr,
			"Content-Range": "bytes 1-2/100", "Content-Length": "2"}},
		{plan(t, "GET", sized(100), "Range", "bytes=100-"), map[string]string{"Content-Range": "bytes */100",
			"Etag": ETag(digest), "Repr-Digest": "", "Content-Type": "", "Content-Length": ""}},
		{plan(t, "GET", sized(100), "Range", "bytes=x"), map[string]string{"Content-Range": "bytes */100"}},
		{plan(t, "GET", sized(100), "If-None-Match", "*"), map[string]string{"Etag": ETag(digest), "Content-Type": "",
			"Content-Length": ""}},
		{plan(t, "GET", Content{Size: 5}), map[string]string{"Content-Type": "application/octet-stream", "Etag": "",
			"Repr-Digest": "", "Last-Modified": ""}},
	}
	for i, c := range cases {
		h := http.Header{"Kept": {"yes"}}
		c.answer.SetHeader(h)
		c.want["Kept"] = "yes"
		for name, v := range c.want {
			if got := h.Get(name); got != v {
				t.Errorf("%d: %s: %q, want %q", i, name, got, v)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for code, a := range map[fault.Code]*Answer{
		fault.RangeInvalid:      plan(t, "GET", sized(10), "Range", "bytes=10-"),
		fault.PreconditionFails: plan(t, "GET", sized(10), "If-Match", `"x"`),
	} {
		if err := a.Refusal(); !fault.Is(err, code) || code.Status() != a.Status {
			t.Errorf("%d: %v", a.Status, err)
		}
	}
	if err := plan(t, "GET", sized(10)).Refusal(); err != nil {
		t.Error(err)
	}
	if _, err := Plan(httptest.NewRequest("POST", "/", nil), sized(1)); !fault.Is(err, fault.InvalidInput) {
		t.Errorf("POST: %v", err)
	}
}

func BenchmarkPlan(b *testing.B) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Range", "bytes=1000-2000")
	for b.Loop() {
		if _, err := Plan(r, sized(1<<30)); err != nil {
			b.Fatal(err)
		}
	}
}
