package supervisor

import (
	"maps"
	"slices"

	"github.com/roadstead/roadstead/internal/executor/folder"
	"github.com/roadstead/roadstead/internal/executor/sandbox"
)

// The names under which a job finds its folders, and the variables that say so: the job's contract.
const (
	inputs       = sandbox.Home + "/inputs"
	outputs      = sandbox.Home + "/outputs"
	scratch      = sandbox.Home + "/scratch"
	checkpointIn = sandbox.Home + "/checkpoint-in"
	checkpoint   = sandbox.Home + "/checkpoint"
	progress     = sandbox.Home + "/progress"
	program      = sandbox.Home + "/package"
)

// plan lays the Attempt's folders out in its sandbox.
func plan(o folder.Order, f folder.Folder) sandbox.Plan {
	p := sandbox.Plan{
		Bubblewrap: o.Bubblewrap, User: o.User, Privileged: o.Privileged, Rootfs: o.Spec.Image, Network: o.Spec.Network, Argv: o.Spec.Argv, Secrets: o.Spec.Secrets,
		ShmBytes: o.Spec.Limits.Memory / 2, FileBytes: o.Spec.Limits.Disk, Dir: scratch,
		Mounts: []sandbox.Mount{
			{Source: f.Inputs(), Target: inputs},
			{Source: f.CheckpointIn(), Target: checkpointIn},
			{Source: f.Outputs(), Target: outputs, Writable: true},
			{Source: f.Scratch(), Target: scratch, Writable: true},
			{Source: f.Checkpoint(), Target: checkpoint, Writable: true},
			{Source: f.Temp(), Target: "/tmp", Writable: true},
			{Source: f.Progress(), Target: progress, Writable: true, File: true},
		},
	}
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": scratch, "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
	maps.Copy(env, o.Spec.Env)
	maps.Copy(env, map[string]string{
		"ROADSTEAD_ATTEMPT_ID": o.Spec.AttemptID, "ROADSTEAD_INPUTS": inputs, "ROADSTEAD_OUTPUTS": outputs, "ROADSTEAD_SCRATCH": scratch,
		"ROADSTEAD_SECRETS": sandbox.SecretsDir, "ROADSTEAD_CHECKPOINT_IN": checkpointIn, "ROADSTEAD_CHECKPOINT": checkpoint,
		"ROADSTEAD_PROGRESS": progress,
	})
	if o.Spec.Package != "" {
		p.Mounts = append(p.Mounts, sandbox.Mount{Source: o.Spec.Package, Target: program})
		env["ROADSTEAD_PACKAGE"], p.Dir = program, program
	}
	if o.Spec.Dir != "" {
		p.Dir = o.Spec.Dir
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.Env = append(p.Env, name+"="+env[name])
	}
	return p
}
