package supervisor_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/executor/supervisor"
)

// A supervisor that comes too late launches nothing: the Attempt was launched before, a runner has closed it meanwhile, or
// another supervisor has it.
func TestNeverLaunchedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		happened func(folder.Folder) error
		says     string
	}{
		"launched": {func(f folder.Folder) error { return f.WriteLaunch(folder.Launch{}) }, "never launched again"},
		"closed":   {func(f folder.Folder) error { return f.WriteRecord(folder.Record{Reason: lifecycle.CannotStart}) }, "never launched again"},
		"held": {func(f folder.Folder) error {
			lock, err := f.Lock()
			t.Cleanup(func() { _ = lock.Close() })
			return err
		}, folder.ErrHeld.Error()},
		"damaged": {func(f folder.Folder) error {
			return os.WriteFile(filepath.Join(string(f), "launch.json"), []byte("{"), 0o600)
		}, "read launch.json"},
		"no order": {func(folder.Folder) error { return nil }, "read order.json"},
	} {
		t.Run(name, func(t *testing.T) {
			f := folder.Folder(t.TempDir())
			message, err := json.Marshal(supervisor.Message{Folder: f})
			if err := errors.Join(err, c.happened(f)); err != nil {
				t.Fatal(err)
			}
			answer, err := os.Create(filepath.Join(t.TempDir(), "answer"))
			if err != nil {
				t.Fatal(err)
			}
			if err := supervisor.Main(strings.NewReader(string(message)), answer); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
			if _, err := os.Stat(f.LogFile()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it began: %v", err)
			}
		})
	}
}
