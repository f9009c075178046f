package artifacts

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roadstead/roadstead/internal/fault"
)

func TestCheckPath(t *testing.T) {
	for _, good := range []string{
		"a", "a/b", "a b/c", ".hidden", "..a", "a..", "...", "я/é.txt", "a%2e", "a?b#c", "🚢", strings.Repeat("a", 255),
		strings.Repeat("a/", 511) + "aa",
	} {
		if err := CheckPath("path", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", `a\b`, "a\x00", "a\nb", "a\x7f", "a\u0085", "\xff", "a\u2028",
		"a\U0010ffff", strings.Repeat("a", 256), strings.Repeat("a/", 512) + "a",
	} {
		err := CheckPath("path", bad)
		if !fault.Is(err, fault.InvalidInput) || fault.From(err).Details[0].Field != "path" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "a//b", "\x00", "\xff", "..a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckPath("path", s) != nil {
			return
		}
		if path.Clean("/"+s) != "/"+s || len(s) > MaxPath || !utf8.ValidString(s) || strings.ContainsAny(s, "\\\x00\n\r") {
			t.Errorf("allowed %q", s)
		}
	})
}

func FuzzRepositoryName(f *testing.F) {
	for _, s := range []string{"a", "a.b-c_d", "-a", "A", "", "a/b", "a\n", strings.Repeat("a", 129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		allowed := CheckRepositoryName("name", s) == nil
		want := len(s) >= 1 && len(s) <= 128 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" && !strings.ContainsAny(s[:1], "._-")
		if allowed != want {
			t.Errorf("%q: allowed %v", s, allowed)
		}
	})
}

func FuzzParseDigest(f *testing.F) {
	for _, s := range []string{"sha256:" + strings.Repeat("0", 64), "sha256:" + strings.Repeat("A", 64), "", "sha256:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if hex, err := ParseDigest("digest", s); err == nil && ("sha256:"+hex != s || strings.ContainsAny(hex, "/.\\")) {
			t.Errorf("%q became %q", s, hex)
		}
	})
}

func TestParseTags(t *testing.T) {
	for value, want := range map[string]string{
		`"a"`: `"a"`, ` "a" , "b"	,"c"`: `"a""b""c"`, `W/"a", "b"`: `"b"`, `""`: `""`, `"a,b"`: `"a,b"`, "*": "*", "": "none",
	} {
		list, err := parseTags("If-Match", value, true)
		got := "none"
		if list != nil {
			if got = strings.Join(list.tags, ""); list.any {
				got = "*"
			}
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
	for _, bad := range []string{"a", `"a`, `a"`, `"a" "b"`, `"a",`, `,"a"`, `w/"a"`, `*, "a"`, `"a b"`, "\"a\x00\"", strings.Repeat(`"a",`, 64) + `"a"`} {
		if list, err := parseTags("If-Match", bad, true); !fault.Is(err, fault.InvalidInput) || list != nil {
			t.Errorf("%q: %+v, %v", bad, list, err)
		}
	}
}

func FuzzParseTags(f *testing.F) {
	for _, s := range []string{`"a", W/"b"`, "*", `"`, `W/`, `"a",,`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseTags("If-None-Match", s, false)
		if err != nil || list == nil {
			return
		}
		if again, err := parseTags("If-None-Match", strings.Join(list.tags, ", "), false); !list.any && (err != nil || len(again.tags) != len(list.tags)) {
			t.Errorf("%q was read as %q, which is read as %v, %v", s, list.tags, again, err)
		}
	})
}
