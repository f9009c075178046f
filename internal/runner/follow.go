package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/core/lifecycle"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/fault"
)

const (
	pumpEvery  = 500 * time.Millisecond
	pumpLines  = 1000
	pumpBytes  = 512 << 10
	checkEvery = 2 * time.Second // for a new checkpoint
)

// outputsOf remembers what the job was, from this runner's own disk.
func (r *Runner) outputsOf(h *held, job *api.Job) error {
	return r.state.read(filepath.Join("assignments", h.assignment.Attempt+".job"), job)
}

// follow carries logs and checkpoints while the payload runs, and its results when it is over.
func (r *Runner) follow(ctx context.Context, h *held, job api.Job) (api.JobReport, error) {
	p := &pump{r: r, h: h}
	over := make(chan struct{})
	var record executor.Record
	var waitErr error
	go func() {
		defer close(over)
		record, waitErr = h.attempt.Wait(ctx)
	}()
	tick, check := time.NewTicker(pumpEvery), time.NewTicker(checkEvery)
	defer tick.Stop()
	defer check.Stop()
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-tick.C:
			if err := p.send(ctx); err != nil && isLost(err) {
				r.mu.Lock()
				r.loseLocked(h)
				r.mu.Unlock()
			}
		case <-check.C:
			if err := p.checkpoint(ctx); err != nil && ctx.Err() == nil {
				r.cfg.Log.Warn("a checkpoint could not be stored", "attempt", h.assignment.Attempt, "error", err)
			}
		}
	}
	if waitErr != nil {
		return api.JobReport{}, waitErr
	}
	err := patiently(ctx, func() error { return p.send(ctx) })
	if err != nil && (isLost(err) || !final(err)) {
		return api.JobReport{}, err
	}
	report := reportOf(record)
	if report.Outcome != "exited" || report.ExitCode != 0 {
		// Another Attempt may follow: it shall find what this one left last.
		if err := p.checkpoint(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("the last checkpoint could not be stored", "attempt", h.assignment.Attempt, "error", err)
		}
	}
	if err != nil {
		report.Detail = short("the log is not whole: " + err.Error()) // no reason to keep the end from the server
	}
	if report.Outcome != "exited" || report.ExitCode != 0 {
		return report, nil
	}
	manifest, err := r.uploadResults(ctx, h, job)
	if err != nil && !isLost(err) && ctx.Err() == nil {
		report.Detail = short("results: " + err.Error()) // the server sees what is missing
		err = nil
	}
	report.Manifest = manifest
	return report, err
}

// reportOf says in the wire's words how the payload ended.
func reportOf(rec executor.Record) api.JobReport {
	out := api.JobReport{
		Outcome: "failed", Reason: string(rec.Reason), Detail: short(rec.Detail), ExitCode: rec.ExitCode, Manifest: []api.JobResult{},
		Usage: api.Usage{
			WallMillis: rec.Usage.Wall.Milliseconds(), CPUMillis: (rec.Usage.User + rec.Usage.System).Milliseconds(), MemoryBytes: rec.Usage.MemoryPeak,
			WrittenBytes: rec.Usage.Disk, LogBytes: rec.Usage.Log,
		},
	}
	switch rec.Reason {
	case lifecycle.Done, lifecycle.ExitCode:
		out.Outcome = "exited"
	case lifecycle.CancelRequested:
		out.Outcome = "cancelled"
	case lifecycle.RunnerLost, lifecycle.Drained, lifecycle.LeaseLost:
		out.Outcome = "interrupted"
	}
	return out
}

// pump carries what the payload writes to the server, in pieces.
type pump struct {
	r      *Runner
	h      *held
	offset int64
	said   string // the last progress that was sent
	stored string // the last checkpoint that was stored: name, size, time
}

// send sends everything that is new.
func (p *pump) send(ctx context.Context) error {
	path := "/api/v1/runner/attempts/" + p.h.assignment.Attempt + "/logs"
	for {
		page, err := p.h.attempt.Logs(p.offset, pumpLines)
		if err != nil {
			return err
		}
		progress, said := p.progress()
		if len(page.Lines) == 0 && progress == nil {
			return nil
		}
		for rest := page.Lines; ; {
			n := fitting(rest)
			in := api.JobLogs{Fence: p.h.assignment.Fence, First: 1, Lines: wire(rest[:n]), Progress: progress}
			if n > 0 {
				in.First = rest[0].N
			}
			if err := p.r.client.post(ctx, path, in, nil); err != nil {
				return err
			}
			p.said, progress = said, nil
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		if p.offset = page.Next; len(page.Lines) < pumpLines {
			return nil
		}
	}
}

// fitting says how many lines go into one call.
func fitting(lines []executor.Line) int {
	size := 0
	for i, l := range lines {
		if size += len(l.Text) + 80; size > pumpBytes && i > 0 {
			return i
		}
	}
	return len(lines)
}

func wire(lines []executor.Line) []api.JobLine {
	out := make([]api.JobLine, len(lines))
	for i, l := range lines {
		stream := map[string]string{"out": "stdout", "err": "stderr"}[l.Stream]
		if stream == "" {
			stream = "system"
		}
		out[i] = api.JobLine{At: time.UnixMilli(l.Millis).UTC(), Stream: stream, Text: l.Text}
	}
	return out
}

// progress is the job's own word: a fraction, then text, in one line. nil: nothing new.
func (p *pump) progress() (*api.Progress, string) {
	line, err := p.h.attempt.Progress()
	if err != nil || line == "" || line == p.said {
		return nil, p.said
	}
	number, message, _ := strings.Cut(strings.TrimSpace(line), " ")
	fraction, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(fraction) {
		fraction, message = 0, line
	}
	return &api.Progress{Fraction: min(max(fraction, 0), 1), Message: message[:min(len(message), 500)], At: time.Now().UTC()}, line
}

// checkpoint stores the newest file of the checkpoint folder when it is a new one. Names that end in .tmp are not
// finished.
func (p *pump) checkpoint(ctx context.Context) error {
	root, err := os.OpenRoot(p.h.attempt.Layout().Checkpoint)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read from
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := folder.ReadDir(1000)
	_ = folder.Close() // only read from
	if err != nil && err != io.EOF {
		return err
	}
	var newest os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(e.Name(), ".tmp") && (newest == nil || info.ModTime().After(newest.ModTime())) {
			newest = info
		}
	}
	if newest == nil {
		return nil
	}
	mark := fmt.Sprint(newest.Name(), " ", newest.Size(), " ", newest.ModTime().UnixNano())
	if mark == p.stored {
		return nil
	}
	if _, err := p.r.store(ctx, p.h, root, "checkpoint", newest.Name(), newest.Name()); err != nil {
		return err
	}
	p.stored = mark
	return nil
}

// uploadResults uploads every output that is there. What is missing, the server decides about.
func (r *Runner) uploadResults(ctx context.Context, h *held, job api.Job) ([]api.JobResult, error) {
	manifest := []api.JobResult{}
	root, err := os.OpenRoot(h.attempt.Layout().Outputs)
	if err != nil {
		return manifest, err
	}
	defer func() { _ = root.Close() }() // only read from
	for _, out := range job.Outputs {
		path := out.Path
		if path == "" {
			path = out.Name
		}
		if info, err := root.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		result, err := r.store(ctx, h, root, "result", out.Name, path)
		if err != nil {
			return manifest, fmt.Errorf("%s: %w", out.Name, err)
		}
		manifest = append(manifest, result)
	}
	return manifest, nil
}

// store uploads one file under a grant for exactly its bytes. Each try has a grant of its own: one may have grown old
// while the server was away.
func (r *Runner) store(ctx context.Context, h *held, root *os.Root, kind, name, path string) (api.JobResult, error) {
	f, err := openRegular(root, path)
	if err != nil {
		return api.JobResult{}, err
	}
	defer func() { _ = f.Close() }() // only read from
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return api.JobResult{}, err
	}
	result := api.JobResult{Name: name, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: size}
	return result, patiently(ctx, func() error {
		if info, err := f.Stat(); err != nil || info.Size() != size {
			return errors.Join(errChanged, err)
		}
		var grant api.UploadGrant
		err := r.client.post(ctx, "/api/v1/runner/attempts/"+h.assignment.Attempt+"/grants", api.NewGrant{
			Fence: h.assignment.Fence, Kind: kind, Name: name, Digest: result.Digest, Size: size,
		}, &grant)
		if err != nil || grant.Done {
			return err
		}
		return r.client.upload(ctx, grant, f, size)
	})
}

// openRegular opens a file of the job's, which may be putting something else in its place at this very moment: a pipe
// must not hold up whoever reads.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkDigest reads a fetched file again and refuses other bytes than those that were promised.
func checkDigest(f *os.File, o api.JobObject) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != o.Digest || n != o.Size {
		return fault.New(fault.IntegrityMismatch, "what came is %s with %d bytes, promised was %s with %d", got, n, o.Digest, o.Size)
	}
	return nil
}
