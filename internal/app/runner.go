package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/executor"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/runner"
)

// RunnerOptions say how a runner that is a process of its own works.
type RunnerOptions struct {
	Server    string // URL
	Dir       string
	Name      string // the host's when empty
	TokenFile string // of a token to register with; needed once
	Capacity  api.Resources
	Labels    map[string]string
	CacheSize int64
	Version   string
	Log       *slog.Logger
}

// attemptFolders is how many Attempts may have a folder at once: those that run, and those whose report is on its way.
func attemptFolders(slots int64) int { return int(max(64, 4*min(slots, 10_000))) }

// OpenRunner opens a runner's folder and probes the machine; what it doesn't say is the machine's.
func OpenRunner(ctx context.Context, o RunnerOptions) (*runner.Runner, error) {
	if o.Server == "" {
		return nil, fault.Invalid("server", "must be the server's URL")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		if o.Name, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	token := ""
	if o.TokenFile != "" {
		text, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, fault.Wrap(fault.InvalidInput, err, "the token can't be read from %s", o.TokenFile)
		}
		token = strings.TrimSpace(string(text))
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	whole := machineCapacity(dir)
	fillCapacity(&o.Capacity, whole)
	return runner.New(ctx, runner.Config{
		Server: o.Server, Dir: dir, Name: o.Name, Token: token, Capacity: o.Capacity, Labels: o.Labels, Version: o.Version, CacheSize: o.CacheSize,
		Log: o.Log, Executor: executorConfig(o.Capacity.Slots),
	}, clock.NewSystem())
}

func executorConfig(slots int64) executor.Config {
	return executor.Config{FirstUser: executor.DefaultFirstUser, Users: attemptFolders(slots)}
}

// Probe says what this machine can hold Attempts to, without starting a runner.
func Probe(ctx context.Context, dir string) (executor.Report, error) {
	c := executorConfig(1)
	dir, err := filepath.Abs(dir)
	if err != nil {
		return executor.Report{}, err
	}
	c.Dir = filepath.Join(dir, "attempts")
	e, err := executor.New(c)
	if err != nil {
		return executor.Report{}, err
	}
	return e.Probe(ctx), nil
}

// machineCapacity is what this machine gives to Attempts unless somebody says less: a slot for each CPU, three
// quarters of the memory, half of the disk that is free.
func machineCapacity(dir string) api.Resources {
	cpus := int64(runtime.NumCPU())
	c := api.Resources{Slots: cpus, MilliCPU: cpus * 1000, MemoryBytes: machineMemory() / 4 * 3, DiskBytes: 1 << 30}
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		c.DiskBytes = max(c.DiskBytes, int64(fs.Bavail)*int64(fs.Bsize)/2)
	}
	return c
}

func fillCapacity(c *api.Resources, from api.Resources) {
	for _, f := range []struct {
		value     *int64
		otherwise int64
	}{{&c.Slots, from.Slots}, {&c.MilliCPU, from.MilliCPU}, {&c.MemoryBytes, from.MemoryBytes}, {&c.DiskBytes, from.DiskBytes}} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
}
