package blob

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

const killDir = "ROADSTEAD_TEST_KILL_DIR"

// pattern is an endless text any piece of which can be made again.
type pattern struct{ at int64 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte((p.at + int64(i)) * 31 / 7)
	}
	p.at += int64(len(b))
	return len(b), nil
}

// TestKill: a process is killed in the middle of appending. What it acknowledged is there, and the upload goes on.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		appendUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), killDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acked int64
	lines := bufio.NewScanner(out)
	for n := 0; n < 7 && lines.Scan(); n++ {
		if acked, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it says that it was killed

	d := open(t, Config{Dir: dir})
	at, err := d.Offset(t.Context(), "u1")
	if err != nil || at < acked || acked == 0 {
		t.Fatalf("at %d after %d were acknowledged, %v", at, acked, err)
	}
	end, err := d.Append(t.Context(), "u1", at, io.LimitReader(&pattern{at: at}, 1000))
	if err != nil {
		t.Fatal(err)
	}
	digest, _, err := d.Seal(t.Context(), "u1", "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Open(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(io.LimitReader(&pattern{}, end))
	if err != nil || !bytes.Equal(got, want) || digest != digestOf(hashed(string(want))) {
		t.Errorf("%d bytes differ from what was sent, %v", len(got), err)
	}
	if n := count(t, d.tmp); n != 0 {
		t.Errorf("%d leftovers", n)
	}
}

// appendUntilKilled appends pieces of odd sizes and prints each durable end.
func appendUntilKilled(t *testing.T, dir string) {
	d := open(t, Config{Dir: dir})
	for at := int64(0); ; {
		end, err := d.Append(t.Context(), "u1", at, io.LimitReader(&pattern{at: at}, 300_001))
		if err != nil {
			t.Fatal(err)
		}
		if at = end; at > 1<<30 {
			t.Fatal("nobody killed this process")
		}
		if _, err := fmt.Fprintln(os.Stdout, end); err != nil {
			return // the parent is gone
		}
	}
}
