package secrets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/secrets"
)

const (
	password = `p@ss w0rd+"é/x`
	pem      = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\n-----END KEY-----\n"
)

func wrap(s string, n int, end string) string {
	var b strings.Builder
	for i := 0; i < len(s); i += n {
		b.WriteString(s[i:min(len(s), i+n)] + end)
	}
	return b.String()
}

// A value is masked as it is, in base64, URL-encoded and in JSON, also wrapped over lines; what is no value stays, and so
// do line ends.
func TestMask(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	quoted, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}
	m := secrets.NewMasker([]byte(password), []byte(pem), []byte("aaaaaa"), []byte("abcdefgh"), []byte("cdefghij"), []byte("  padded value\n"))
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"nothing to hide here\n", "nothing to hide here\n"},
		{"pw=" + password + ";", "pw=***;"},
		{password, "***"},
		{password + password, "***"},
		{password + " " + password, "*** ***"},
		{"url?p=" + url.QueryEscape(password) + "&x=1", "url?p=***&x=1"},
		{"url/" + url.PathEscape(password) + "/1", "url/***/1"},
		{"url?p=" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20") + "&x=1", "url?p=***&x=1"},
		{"url?p=" + strings.ToLower(url.QueryEscape(password)) + "&x", "url?p=***&x"},
		{`{"p":` + string(quoted) + `}`, `{"p":"***"}`},
		{"Basic " + b64([]byte(password)), "Basic ***"},
		{wrap(password, 5, "\n"), "***\n***\n***\n"},
		{wrap(password, 4, "\r\n"), "***\r\n***\r\n***\r\n***\r\n"},
		{wrap(b64([]byte(pem)), 76, "\n"), "***\n***\n"},
		{pem, "***\n***\n***\n***\n"},
		{"2027 | MIIEvQIBADANBgkqhkiG9w0BAQEF\n2027 | other\n", "2027 | ***\n2027 | other\n"},
		{"padded value", "***"},
		{"aaaaa", "aaaaa"},
		{"aaaaaa", "***"},
		{"baaaaaaaaaaab", "b***b"},
		{"xabcdefghijx", "x***x"},
		{"xabcdefgx cdefghx", "xabcdefgx cdefghx"},
		{"abcdef\n\n\n\n\ngh", "***\n\n\n\n\ngh"}, // given up after so many line ends, and known by then
		{"abc\n\n\n\n\ndefgh", "abc\n\n\n\n\ndefgh"},
		{"cut off: abcdefg", "cut off: ***"},
		{"cut off: abcde", "cut off: abcde"},
		{"\n\n\r\n\n\n\n\n\nx\n", "\n\n\r\n\n\n\n\n\nx\n"},
	} {
		if got := string(m.Mask([]byte(c.in))); got != c.want {
			t.Errorf("%q:\ngot  %q\nwant %q", c.in, got, c.want)
		}
	}
	// Inside other base64 a character at each end may hold bits of the neighbours; those stay.
	for _, before := range []string{"", "u", "us", "user:"} {
		text := b64([]byte(before + password + ":more"))
		got := string(m.Mask([]byte(text)))
		if !strings.Contains(got, "***") || len(got) > len(b64([]byte(before)))+len("***")+len(b64([]byte(":more")))+4 {
			t.Errorf("after %q: %q became %q", before, text, got)
		}
	}
	if got := string(secrets.NewMasker().Mask([]byte("as it is"))); got != "as it is" {
		t.Errorf("without values: %q", got)
	}
}

// What is held back has a bound, also under a value that begins again and again; and so has a masker.
func TestStreamIsBounded(t *testing.T) {
	const length = 1000
	m := secrets.NewMasker([]byte(strings.Repeat("a", length-1) + "b"))
	var out bytes.Buffer
	s := m.Stream(&out)
	in := 0
	for range 100 {
		n, err := io.WriteString(s, strings.Repeat("a", 7777))
		if err != nil {
			t.Fatal(err)
		}
		if in += n; in-out.Len() > length {
			t.Fatalf("%d bytes are held back", in-out.Len())
		}
	}
	if _, err := io.WriteString(s, "b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("a", in-length+1) + "***"; out.String() != want {
		t.Errorf("%d bytes came out, want %d", out.Len(), len(want))
	}
	out.Reset()
	s = m.Stream(&out)
	for range length - 1 {
		if _, err := io.WriteString(s, "a\n\n\n\n"); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() != 0 {
		t.Errorf("%d bytes of a wrapped value came out", out.Len())
	}
	if _, err := io.WriteString(s, "b"); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("***\n\n\n\n", length-1) + "***"; out.String() != want {
		t.Error("a value with every byte on a line of its own came through")
	}

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m = secrets.NewMasker(bytes.Repeat([]byte("a long value & its end;"), secrets.MaxValue/23))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("a masker of the longest value takes %d bytes", grown)
	}
	runtime.KeepAlive(m)
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestStreamTellsOfFailures(t *testing.T) {
	lost := errors.New("lost")
	s := secrets.NewMasker([]byte("secret")).Stream(broken{lost})
	if _, err := s.Write([]byte("sec")); err != nil {
		t.Errorf("nothing was passed on yet: %v", err)
	}
	if _, err := s.Write([]byte("ond")); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	s = secrets.NewMasker([]byte("secret")).Stream(broken{lost})
	if _, err := io.WriteString(s, "secre"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// FuzzMask: cut anywhere the output is the same; no value is left in it, line ends passed over; and a text without any
// byte of a value comes through as it is.
func FuzzMask(f *testing.F) {
	f.Add([]byte("secret-value"), []byte("another one"), []byte("a secret-value\nsecret-\nvalue another o"), uint8(3))
	f.Add([]byte("aaaaaaaa"), []byte("abaaba"), []byte("aaaabaabaaaa\n\n\n\n\n\naa"), uint8(1))
	f.Add([]byte(pem), []byte(password), []byte(base64.StdEncoding.EncodeToString([]byte("x"+password))), uint8(7))
	f.Fuzz(func(t *testing.T, a, b, text []byte, cut uint8) {
		if len(a) > 200 || len(b) > 200 {
			return
		}
		m := secrets.NewMasker(a, b)
		want := m.Mask(text)
		var out bytes.Buffer
		s := m.Stream(&out)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), int(cut)%13+1)
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("cut in pieces of %d: %q, whole: %q", int(cut)%13+1, out.Bytes(), want)
		}
		for _, v := range [][]byte{a, b} {
			if len(flat(v)) < secrets.MinValue || bytes.ContainsRune(v, '*') {
				continue // not looked for, or the mask itself may complete it
			}
			if bytes.Contains(want, v) {
				t.Fatalf("%q is left in %q", v, want)
			}
			if !bytes.Contains(text, []byte("\n\n")) && !bytes.ContainsAny(text, "\r") && bytes.Contains(flat(want), flat(v)) {
				t.Fatalf("%q is left in %q over lines", v, want)
			}
			if encoded := []byte(base64.StdEncoding.EncodeToString(v)); bytes.Contains(m.Mask(encoded), encoded) {
				t.Fatalf("the base64 of %q comes through", v)
			}
		}
		if got := bytes.Count(want, []byte("\n")); got != bytes.Count(text, []byte("\n")) {
			t.Fatalf("%d lines became %d", bytes.Count(text, []byte("\n")), got)
		}
	})
}

func flat(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\n"), nil), []byte("\r"), nil)
}

func BenchmarkMask(b *testing.B) {
	m := secrets.NewMasker([]byte(password), []byte(pem), []byte("postgres://app:secret@db:5432/app"))
	text := bytes.Repeat([]byte("2027-01-01 12:00:00 INFO step 17 of 100 took 3.4 s, connecting to postgres://app\n"), 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := m.Stream(io.Discard)
		if _, err := s.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}
