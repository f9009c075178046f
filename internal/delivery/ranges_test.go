package delivery

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"time"
)

func TestParseRange(t *testing.T) {
	many := "bytes=0-0"
	for range MaxRanges {
		many += ",0-0"
	}
	cases := []struct {
		header string
		size   int64
		want   asked
		parts  []part
	}{
		{"", 10, askedWhole, nil},
		{"bytes=0-", 10, askedParts, []part{{0, 10, false}}},
		{"bytes=3-", 10, askedParts, []part{{3, 10, false}}}, // an open range sets a start (D-2.7)
		{"bytes=3-5", 10, askedParts, []part{{3, 6, false}}},
		{"bytes=3-9", 10, askedParts, []part{{3, 10, true}}},
		{"bytes=3-99", 10, askedParts, []part{{3, 10, true}}},
		{"bytes=0-9", 10, askedParts, []part{{0, 10, false}}}, // all of it is not the tail of it
		{"bytes=-4", 10, askedParts, []part{{6, 10, true}}},
		{"bytes=-40", 10, askedParts, []part{{0, 10, false}}},
		{"bytes=-0", 10, askedNothing, nil},
		{"bytes=-0,1-1", 10, askedParts, []part{{1, 2, false}}},
		{"bytes=10-", 10, askedNothing, nil},
		{"bytes=10-10", 10, askedNothing, nil},
		{"bytes=9-10", 10, askedParts, []part{{9, 10, true}}},
		{"bytes=0-99999999999999999999999", 10, askedParts, []part{{0, 10, false}}},
		{"bytes=99999999999999999999999-", 10, askedNothing, nil},
		{"BYTES=1-2", 10, askedParts, []part{{1, 3, false}}},
		{"bytes= 1-2 ,\t4-5,,", 10, askedParts, []part{{1, 3, false}, {4, 6, false}}},
		{"pages=1-2", 10, askedWhole, nil}, // an unknown unit is ignored
		{"bytes=", 10, askedWhole, nil},
		{"bytes=5-3", 10, askedNothing, nil},
		{"bytes=a-b", 10, askedNothing, nil},
		{"bytes=+1-2", 10, askedNothing, nil},
		{"bytes=1", 10, askedNothing, nil},
		{"bytes=--1", 10, askedNothing, nil},
		{"bytes=-", 10, askedNothing, nil},
		{"bytes", 10, askedNothing, nil},
		{many, 10, askedWhole, nil},
		{"bytes=0-", 0, askedWhole, nil}, // an empty object is always sent whole (D13 of the field reports)
		{"bytes=-5", 0, askedWhole, nil},
		{"bytes=x", 0, askedWhole, nil},
	}
	for _, c := range cases {
		parts, want := parseRange(c.header, c.size)
		if want != c.want || !slices.Equal(parts, c.parts) {
			t.Errorf("%q of %d: %v %v, want %v %v", c.header, c.size, want, parts, c.want, c.parts)
		}
	}
}

// plain is what both parsers must read alike; beyond it ours is stricter or follows the RFC where the other does not.
var plain = regexp.MustCompile(`^bytes=[0-9]{1,18}-[0-9]{0,18}(,[0-9]{1,18}-[0-9]{0,18})*$|^bytes=-0*[1-9][0-9]{0,17}$`)

// The parser agrees with the one inside http.ServeContent, and never panics or invents bytes.
func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"bytes=0-", "bytes=1-2,4-5", "bytes=-7", "bytes=5-3", "bytes=10-10", "bytes=0-9", "x=1", "bytes=-0"} {
		f.Add(s, int64(10))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if size < 0 || size > 1<<50 {
			return
		}
		parts, want := parseRange(header, size)
		if (want == askedParts) != (len(parts) > 0) || len(parts) > MaxRanges {
			t.Fatalf("%v with parts %v", want, parts)
		}
		for _, p := range parts {
			if p.from < 0 || p.from >= p.to || p.to > size {
				t.Fatalf("part %v of %d", p, size)
			}
		}
		r := httptest.NewRequest(http.MethodHead, "/", nil)
		if want == askedParts { // what we spell must be read by the other as we meant it
			compare(t, r, spell(parts), size, parts)
		}
		if plain.MatchString(header) && size > 0 && want == askedParts {
			compare(t, r, header, size, parts)
		}
		if plain.MatchString(header) && size > 0 && want == askedNothing {
			if got := served(r, header, size); got.Code != http.StatusRequestedRangeNotSatisfiable {
				t.Fatalf("%q of %d: we refuse, ServeContent says %d", header, size, got.Code)
			}
		}
	})
}

func served(r *http.Request, header string, size int64) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "x/y")
	r.Header.Set("Range", header)
	http.ServeContent(w, r, "", time.Time{}, &blank{size: size})
	return w
}

func compare(t *testing.T, r *http.Request, header string, size int64, parts []part) {
	t.Helper()
	w := served(r, header, size)
	var sum int64
	for _, p := range parts {
		sum += p.to - p.from
	}
	switch {
	case sum > size:
		if w.Code != http.StatusOK {
			t.Fatalf("%q of %d: status %d for ranges beyond the size", header, size, w.Code)
		}
	case w.Code != http.StatusPartialContent:
		t.Fatalf("%q of %d: status %d, we read %v", header, size, w.Code, parts)
	case len(parts) == 1:
		if got, want := w.Header().Get("Content-Range"), contentRange(parts[0], size); got != want {
			t.Fatalf("%q: %s, we read %s", header, got, want)
		}
	}
}
