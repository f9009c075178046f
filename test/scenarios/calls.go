package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func (w *world) operatorKey() string {
	key, _ := os.ReadFile(filepath.Join(w.data(), "operator.key")) // it was read before
	return strings.TrimSpace(string(key))
}

// ask makes one call and tells its status; out is filled on success only.
func (w *world) ask(ctx context.Context, method, path, key string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && out != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(text, out)
	}
	return resp.StatusCode, err
}

// metric reads one of the server's metrics, by its name with the labels, as /metrics writes them.
func (w *world) metric(ctx context.Context, name string) (n float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(text, []byte("\n"+name+" "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if _, err := fmt.Sscan(string(line), &n); !found || err != nil {
		return 0, fmt.Errorf("the server's metrics lack %s", name)
	}
	return n, nil
}

// sh is a Run of a shell script.
func sh(script string) api.NewRun {
	return api.NewRun{Command: []string{"/bin/sh", "-c", script}, Timeout: 120, Grace: 1, Expected: 1}
}

// submit submits one Run under a label.
func (w *world) submit(ctx context.Context, t *tenant, label string, n api.NewRun) (string, error) {
	n.Labels = map[string]string{"scenario": label}
	out, err := t.Submit(ctx, n, sdk.Submission{})
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	return out.Runs[0].ID, nil
}

// ended waits until no Run of the label is left that has not ended, and gets them all whole.
func (w *world) ended(ctx context.Context, t *tenant, label string, limit time.Duration) (all []api.Run, err error) {
	f := sdk.RunFilter{Labels: map[string]string{"scenario": label}}
	open := f
	open.States = []string{"queued", "active"}
	err = wait(ctx, "the Runs end", limit, func() bool {
		for _, err := range t.Runs(ctx, open, 1) {
			_ = err // a server that is away is asked again
			return false
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for r, err := range t.Runs(ctx, f, 0) {
		if err != nil {
			return nil, err
		}
		whole, err := t.Run(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, whole)
	}
	return all, nil
}

// settled reports that nothing is held any more than what runs, once the server has counted after all ended.
func (w *world) settled(ctx context.Context) error {
	began, _ := w.metric(ctx, "roadstead_audit_timestamp_seconds") // none yet is 0
	err := wait(ctx, "holds are counted", 45*time.Second, func() bool {
		at, err := w.metric(ctx, "roadstead_audit_timestamp_seconds")
		return err == nil && at > began
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"slots", "money", "lane", "missing"} {
		n, err := w.metric(ctx, fmt.Sprintf("roadstead_hold_drift{kind=%q}", kind))
		if err != nil {
			return err
		}
		w.report(filepath.Base(w.dir)+".drift_"+kind, n, exactly, 0)
	}
	return nil
}

// endSupervisors kills the supervisors of this run's runners, known by the path of the program, which is this run's own.
func (w *world) endSupervisors() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.HasPrefix(line, []byte(w.program()+"\x00supervise\x00")) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its job dies with it
		}
	}
}
