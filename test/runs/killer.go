package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killer kills at random points. Every few kills its taste changes: while servers die every other second no lease runs
// out, since a server that is new gives each its whole time again, and that has to be tried as well.
type killer struct {
	w    *world
	rand *rand.Rand
	did  map[string]int
	back sync.WaitGroup // what was killed and is to come back
}

// kill kills something, or freezes it for longer than its lease, and says whether there was something.
func (k *killer) kill(ctx context.Context, n int) bool {
	servers := n/15%2 == 0
	switch p := k.rand.IntN(100); {
	case p < 25 && servers:
		return k.killServer(ctx)
	case p < 45:
		return k.killRunner(ctx)
	case p < 50:
		return k.freezeRunner(ctx)
	case p < 75:
		return k.killOne("supervisor", k.w.supervisors())
	}
	return k.killOne("job", k.w.jobs())
}

func (k *killer) later(ctx context.Context, after time.Duration, f func()) {
	k.back.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(after):
			f()
		}
	})
}

// killServer kills the server, or stops it for a while: then its database is as good as away.
func (k *killer) killServer(ctx context.Context) bool {
	if !k.w.server.alive() {
		return false
	}
	if k.rand.IntN(5) == 0 {
		k.did["server stopped"]++
		k.w.server.signal(syscall.SIGSTOP)
		k.later(ctx, time.Duration(k.rand.IntN(4000))*time.Millisecond, func() { k.w.server.signal(syscall.SIGCONT) })
		return true
	}
	k.did["server"]++
	k.w.server.kill()
	k.later(ctx, time.Duration(k.rand.IntN(1500))*time.Millisecond, func() {
		if err := k.w.startServer(ctx); err != nil && ctx.Err() == nil {
			say("%v", err)
		}
	})
	return true
}

// killRunner kills a runner; one in six comes back only when its leases are lost.
func (k *killer) killRunner(ctx context.Context) bool {
	r := k.w.runners[k.rand.IntN(len(k.w.runners))]
	if !r.alive() {
		return false
	}
	k.did["runner"]++
	r.kill()
	away := time.Duration(k.rand.IntN(2000)) * time.Millisecond
	if k.rand.IntN(6) == 0 {
		away = lease + grace + 4*time.Second
	}
	k.later(ctx, away, func() {
		if err := r.start(); err != nil {
			say("%v", err)
		}
	})
	return true
}

// freezeRunner stops a runner until others have its Runs; its supervisors go on.
func (k *killer) freezeRunner(ctx context.Context) bool {
	r := k.w.runners[k.rand.IntN(len(k.w.runners))]
	if !r.alive() {
		return false
	}
	k.did["runner frozen"]++
	r.signal(syscall.SIGSTOP)
	k.later(ctx, lease+grace+3*time.Second, func() { r.signal(syscall.SIGCONT) })
	return true
}

func (k *killer) killOne(what string, pids []int) bool {
	if len(pids) == 0 {
		return false
	}
	k.did[what]++
	_ = syscall.Kill(pids[k.rand.IntN(len(pids))], syscall.SIGKILL) // gone is as good
	return true
}

// supervisors finds those of this world: only its processes have its program.
func (w *world) supervisors() (pids []int) {
	for pid, args := range w.ours() {
		if len(args) > 1 && args[1] == "supervise" && !strings.Contains(strings.Join(args, " "), "--enter") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// jobs finds everything that supervisors started: sandboxes and what is in them.
func (w *world) jobs() (pids []int) {
	open := w.supervisors()
	for len(open) > 0 {
		threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(open[0]), "task", "*", "children")) // gone has none
		open = open[1:]
		for _, file := range threads {
			text, _ := os.ReadFile(file) // likewise
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil {
					pids, open = append(pids, pid), append(open, pid)
				}
			}
		}
	}
	return pids
}

// ours are the processes that run this world's program, with their arguments.
func (w *world) ours() map[int][]string {
	all := map[int][]string{}
	entries, _ := os.ReadDir("/proc") // it is there
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err != nil || exe != w.program {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil {
			all[pid] = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		}
	}
	return all
}
