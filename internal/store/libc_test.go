package store_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLibcIsTheOneSQLiteNames: modernc.org/sqlite is tested with exactly one version of modernc.org/libc; another
// dependency that lifts it would break the pair unnoticed.
func TestLibcIsTheOneSQLiteNames(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.GoMod}}", "modernc.org/libc", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(out))
	if len(words) != 4 {
		t.Fatalf("go list says %q", out)
	}
	libc, sqliteMod := words[0], words[3]
	text, err := os.ReadFile(sqliteMod)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "modernc.org/libc "+libc+"\n") {
		t.Errorf("go.mod takes modernc.org/libc %s, which is not what %s names", libc, sqliteMod)
	}
}
