package sdk

import (
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"0", 0, true},
		{"2", 2 * time.Second, true},
		{" 120\t", 2 * time.Minute, true},
		{"007", 7 * time.Second, true},
		{"99999999999999999999999999", maxSeconds * time.Second, true},
		{"Mon, 30 Nov 2026 12:05:00 GMT", 5 * time.Minute, true},
		{"Monday, 30-Nov-26 12:05:00 GMT", 5 * time.Minute, true},
		{"Mon Nov 30 12:05:00 2026", 5 * time.Minute, true},
		{"Mon, 30 Nov 2026 11:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", maxSeconds * time.Second, true},
		{"", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1 2", 0, false},
		{"soon", 0, false},
		{"1e3", 0, false},
		{"٣", 0, false},
	}
	for _, tt := range tests {
		if got, ok := ParseRetryAfter(tt.in, noon); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %v %v, want %v %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"3", "Mon, 30 Nov 2026 12:05:00 GMT", "-1", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseRetryAfter(s, noon)
		if d < 0 || d > maxSeconds*time.Second || !ok && d != 0 {
			t.Errorf("%q: %v %v", s, d, ok)
		}
	})
}

func TestParseContentRange(t *testing.T) {
	good := map[string][3]int64{
		"bytes 0-0/1": {0, 0, 1}, "bytes 5-9/10": {5, 9, 10}, "bytes 0-9223372036854775806/9223372036854775807": {0, math.MaxInt64 - 1, math.MaxInt64},
	}
	for in, want := range good {
		a, b, c, err := parseContentRange(in)
		if err != nil || [3]int64{a, b, c} != want {
			t.Errorf("%q: %d %d %d %v", in, a, b, c, err)
		}
	}
	for _, in := range []string{"", "bytes", "bytes */5", "bytes 0-4/*", "bytes 4-3/9", "bytes 0-9/9", "bytes -1-3/9", "bytes 0-+1/9", "items 0-1/9", "bytes 0-1/99999999999999999999", "bytes 0-9223372036854775807/9223372036854775807"} {
		if _, _, _, err := parseContentRange(in); err == nil {
			t.Errorf("%q is accepted", in)
		}
	}
}

func FuzzParseContentRange(f *testing.F) {
	f.Add("bytes 0-9/10")
	f.Add("bytes */10")
	f.Fuzz(func(t *testing.T, s string) {
		if a, b, size, err := parseContentRange(s); err == nil && (a < 0 || a > b || b >= size || b-a+1 <= 0) {
			t.Errorf("%q: %d-%d/%d", s, a, b, size)
		}
	})
}

func TestAnswerDigest(t *testing.T) {
	want := digestOf([]byte("x"))
	hex := strings.TrimPrefix(want, digestPrefix)
	good := []http.Header{
		{"Repr-Digest": {reprDigest(want)}},
		{"Repr-Digest": {"sha-512=:AAAA:, SHA-256=" + strings.TrimPrefix(reprDigest(want), "sha-256=")}},
		{"Repr-Digest": {"sha-256=:short:"}, "Etag": {`"` + hex + `"`}},
		{"Etag": {`"` + strings.ToUpper(hex) + `"`}},
		{"Etag": {`"sha256:` + hex + `"`}},
	}
	for _, h := range good {
		if got := answerDigest(h); got != want {
			t.Errorf("%v: %q", h, got)
		}
	}
	for _, h := range []http.Header{{}, {"Etag": {`W/"` + hex + `"`}}, {"Etag": {`"rev-7"`}}, {"Repr-Digest": {"sha-256"}}} {
		if got := answerDigest(h); got != "" {
			t.Errorf("%v: %q", h, got)
		}
	}
}

// Whatever lies where a checkpoint should, reading it neither fails nor believes the impossible.
func FuzzLoadCheckpoint(f *testing.F) {
	f.Add([]byte(`{"id":"a","url":"u","size":10,"offset":5,"hash":"AAAA"}`))
	f.Add([]byte(`{"id":"a","url":"u","size":-1,"offset":5}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(checkpointFile(file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		cp, ok := loadCheckpoint(file, "u")
		if ok && (cp.ID == "" || cp.Offset < 0 || cp.Offset > max(cp.Size, 0)) {
			t.Errorf("%s: %+v", raw, cp)
		}
		if ok {
			if _, err := restoreHash(strings.NewReader(""), cp.Hash, 0); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNewChecksItsConfig(t *testing.T) {
	for _, bad := range []Config{{}, {URL: "store:80"}, {URL: "ftp://store"}, {URL: "http://"}, {URL: "http://a b"}, {URL: "http://store", Key: "a\nb"}} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	c, err := New(Config{URL: "https://store/base/"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.FileURL("repo", "a b/ü%/c?d"); got != "https://store/base/files/repo/a%20b/%C3%BC%25/c%3Fd" {
		t.Error(got)
	}
}
