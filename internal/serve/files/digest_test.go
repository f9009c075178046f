package files

import (
	"net/http"
	"testing"
)

func TestWantedDigest(t *testing.T) {
	const (
		empty    = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
		emptyHex = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	)
	cases := []struct {
		name string
		h    http.Header
		want string
		bad  bool
	}{
		{"none", http.Header{}, "", false},
		{"repr", http.Header{"Repr-Digest": {empty}}, emptyHex, false},
		{"content", http.Header{"Content-Digest": {empty}}, emptyHex, false},
		{"both the same", http.Header{"Content-Digest": {empty}, "Repr-Digest": {empty}}, emptyHex, false},
		{"beside another algorithm", http.Header{"Repr-Digest": {"sha-512=:AAAA:, " + empty}}, emptyHex, false},
		{"only another algorithm", http.Header{"Repr-Digest": {"sha-512=:AAAA:"}}, "", false},
		{"contradiction", http.Header{"Content-Digest": {empty}, "Repr-Digest": {"sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"}}, "", true},
		{"hex", http.Header{"Repr-Digest": {"sha-256=e3b0"}}, "", true},
		{"too short", http.Header{"Repr-Digest": {"sha-256=:AAAA:"}}, "", true},
		{"no value", http.Header{"Repr-Digest": {"sha-256"}}, "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := wantedDigest(c.h)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzWantedDigest(f *testing.F) {
	f.Add("sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:", "x=1")
	f.Fuzz(func(t *testing.T, repr, content string) {
		got, err := wantedDigest(http.Header{"Repr-Digest": {repr}, "Content-Digest": {content}})
		if err == nil && got != "" && len(got) != 71 {
			t.Errorf("%q", got)
		}
	})
}
