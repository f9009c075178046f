package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/roadstead/roadstead/api"
)

// state is the runner's folder: who it is, what it took over, what it has to report. Every file is whole or not there.
type state struct {
	dir          string
	registration api.RegisteredRunner

	mu  sync.Mutex
	ack int64
}

func openState(dir string) (*state, error) {
	s := &state{dir: dir}
	for _, name := range []string{"", "assignments", "reports", "attempts", "cache"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("opening the runner's folder: %w", err)
		}
	}
	for _, name := range []string{"assignments", "reports"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("closing the runner's folder: %w", err)
		}
	}
	err := s.read("registration.json", &s.registration)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

func (s *state) folder(name string) string { return filepath.Join(s.dir, name) }

func (s *state) read(name string, out any) error {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join(s.dir, name), err)
	}
	return nil
}

// write puts a file in place that is on the disk when it returns, readable by the runner alone.
func (s *state) write(name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := durably(path, text); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func durably(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *state) saveRegistration(r api.RegisteredRunner) error {
	s.registration = r
	return s.write("registration.json", r)
}

func (s *state) saveAssignment(a api.Assignment) error {
	return s.write(filepath.Join("assignments", a.Attempt+".json"), a)
}

// assignments lists what was taken over and is not over.
func (s *state) assignments() (map[string]api.Assignment, error) {
	files, err := os.ReadDir(s.folder("assignments"))
	if err != nil {
		return nil, fmt.Errorf("reading the runner's assignments: %w", err)
	}
	all := map[string]api.Assignment{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		var a api.Assignment
		if err := s.read(filepath.Join("assignments", f.Name()), &a); err != nil {
			return nil, err
		}
		all[a.Attempt] = a
	}
	return all, nil
}

// acknowledge notes the last assignment that was taken over. It is not kept on the disk: what the server repeats is known by
// its id.
func (s *state) acknowledge(sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ack = max(s.ack, sequence)
}

func (s *state) acknowledged() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ack
}

func (s *state) saveReport(attempt string, r api.JobReport) error {
	return s.write(filepath.Join("reports", attempt+".json"), r)
}

// report is what was to be said of an Attempt; ok is false when nothing was decided.
func (s *state) report(attempt string) (r api.JobReport, ok bool, err error) {
	err = s.read(filepath.Join("reports", attempt+".json"), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	return r, err == nil, err
}

func (s *state) drop(attempt string) error {
	var errs []error
	for _, name := range []string{"reports/" + attempt + ".json", "assignments/" + attempt + ".json", "assignments/" + attempt + ".job"} {
		err := os.Remove(filepath.Join(s.dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
