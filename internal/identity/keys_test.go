package identity

import (
	"strings"
	"testing"
)

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{
		"", "rsk_", "rsk_" + strings.Repeat("A", keyIDLen+keySecretLen), "rsk_" + strings.Repeat("7", 67) + "1",
		"rsk_" + strings.Repeat("a", 68), strings.Repeat("\x00", 72),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, secret, ok := parseKey(s)
		if ok && (keyPrefix+id+secret != s || len(id) != keyIDLen || len(secret) != keySecretLen) {
			t.Errorf("%q became %q and %q", s, id, secret)
		}
		if !ok && id+secret != "" {
			t.Errorf("parts of a refused key: %q, %q", id, secret)
		}
	})
}

func TestRolesIncludeLower(t *testing.T) {
	order := []Role{"", Read, Write, Admin}
	for i, have := range order {
		for j, need := range order {
			if have.Allows(need) != (i >= j) {
				t.Errorf("%q allows %q: %v", have, need, i < j)
			}
		}
	}
}
