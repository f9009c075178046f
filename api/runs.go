package api

import (
	"encoding/json"
	"time"
)

// Resources is what an Attempt holds of its runner while it lives. Absent parts take the package's, then the
// pool's defaults.
type Resources struct {
	Slots       int64 `json:"slots,omitempty" minimum:"0" maximum:"1000000" doc:"Units of the pool's concurrency; 1 unless said otherwise."`
	MilliCPU    int64 `json:"milliCpu,omitempty" minimum:"0" maximum:"10000000" doc:"Thousandths of a CPU."`
	MemoryBytes int64 `json:"memoryBytes,omitempty" minimum:"0"`
	DiskBytes   int64 `json:"diskBytes,omitempty" minimum:"0"`
}

// Retry is how often a Run may be tried again. Failures and losses count apart.
type Retry struct {
	Failures       int   `json:"failures,omitempty" minimum:"0" maximum:"100" doc:"More Attempts after one that failed."`
	Losses         int   `json:"losses,omitempty" minimum:"0" maximum:"100" doc:"More Attempts after one that was interrupted, for example because its runner was lost."`
	BackoffSeconds int64 `json:"backoffSeconds,omitempty" minimum:"0" maximum:"900" doc:"Wait before the first retry, doubled each time up to 15 minutes."`
}

// After makes a Run wait for the end of another, or of every element of an array.
type After struct {
	Run  string `json:"run" doc:"Id of a Run or of an array; in a batch also @name of another Run of the batch."`
	When string `json:"when,omitempty" enum:"ok,any,fail" doc:"The end it waits for: succeeded (ok, the default), whichever (any), anything but succeeded (fail)."`
}

// Array makes many Runs of one submit; each finds its index in ROADSTEAD_ARRAY_INDEX.
type Array struct {
	First int `json:"first" minimum:"0" maximum:"1000000"`
	Last  int `json:"last" minimum:"0" maximum:"1000000"`
	Limit int `json:"limit,omitempty" minimum:"0" doc:"How many of them may be active at once; 0: no limit of its own."`
}

// Concurrency keeps Runs of one key from being active at the same time within a tenant.
type Concurrency struct {
	Key    string `json:"key" minLength:"1" maxLength:"200"`
	Policy string `json:"policy,omitempty" enum:"queue,replace,skip" doc:"queue (the default): one after the other; replace: cancel the earlier ones; skip: end at once when there is one."`
}

// Input is where one input of a Run comes from: exactly one of the three.
type Input struct {
	Value  json.RawMessage `json:"value,omitempty" doc:"The value itself."`
	File   string          `json:"file,omitempty" doc:"repository/path of a file in the store, at its revision of the submit."`
	Result *ResultOf       `json:"result,omitempty" doc:"A result of another Run, which must have ended by then: name it in after as well."`
}

// ResultOf names a result of a Run; of an array it means the results of all elements, as a folder.
type ResultOf struct {
	Run    string `json:"run" doc:"Id of a Run or an array, or @name in a batch."`
	Output string `json:"output"`
}

// NewRun is the body of POST /api/v1/runs. Exactly one of package, command and image with command is what runs.
type NewRun struct {
	Package     string            `json:"package,omitempty" doc:"name or name@version of a published package."`
	Image       string            `json:"image,omitempty" doc:"repository/path of an OCI image layout (tar) in the store; command runs in it."`
	Command     []string          `json:"command,omitempty" maxItems:"1000" doc:"Program and arguments; with a package: further arguments of its entry point."`
	Pool        string            `json:"pool,omitempty" doc:"Where to run; the pool named default unless given."`
	Class       string            `json:"class,omitempty" enum:"interactive,background,periodic,build" doc:"Workload class, for measuring (R-1.1)."`
	Priority    int               `json:"priority,omitempty" minimum:"-10" maximum:"10" doc:"Within the tenant: each step counts as ten minutes of waiting."`
	NotBefore   *time.Time        `json:"notBefore,omitempty"`
	Timeout     int64             `json:"timeoutSeconds,omitempty" minimum:"0" maximum:"2592000" doc:"Time the payload may take; the package's or the pool's default when 0."`
	Expected    int64             `json:"expectedSeconds,omitempty" minimum:"0" maximum:"2592000" doc:"What the submitter believes it takes; learnt when absent."`
	Grace       int64             `json:"graceSeconds,omitempty" minimum:"0" maximum:"600" doc:"Between TERM and KILL; 10 when absent."`
	Resources   Resources         `json:"resources,omitempty"`
	Placement   map[string]string `json:"placement,omitempty" doc:"Labels the runner must have."`
	Retry       *Retry            `json:"retry,omitempty"`
	Labels      map[string]string `json:"labels,omitempty" doc:"For search."`
	Concurrency *Concurrency      `json:"concurrency,omitempty"`
	After       []After           `json:"after,omitempty" maxItems:"100"`
	Array       *Array            `json:"array,omitempty"`
	Env         map[string]string `json:"env,omitempty" doc:"Environment of the payload. Not for secrets."`
	Secrets     []string          `json:"secrets,omitempty" maxItems:"100" doc:"Names of secrets, given as files."`
	Inputs      map[string]Input  `json:"inputs,omitempty"`
	Outputs     []Output          `json:"outputs,omitempty" maxItems:"1000" doc:"Results of a command or image; a package says its own."`
	DryRun      bool              `json:"dryRun,omitempty" doc:"Store nothing; answer place, cost and what blocks it."`
}

// Output is a result that a Run leaves in its output folder.
type Output struct {
	Name      string `json:"name" pattern:"^[A-Za-z0-9._-]{1,100}$"`
	Path      string `json:"path,omitempty" doc:"Below the output folder; the name when absent."`
	MediaType string `json:"mediaType,omitempty"`
	Optional  bool   `json:"optional,omitempty" doc:"May be missing without failing the Run."`
}

// BatchRun is one Run of a batch.
type BatchRun struct {
	Name string `json:"name" pattern:"^[A-Za-z0-9_-]{1,64}$" doc:"Others of the batch refer to it as @name."`
	Run  NewRun `json:"run"`
}

// RunBatch is the body of POST /api/v1/runs/batch: all of them or none.
type RunBatch struct {
	Runs []BatchRun `json:"runs" minItems:"1" maxItems:"100"`
}

// Place is where a queued Run stands, as of an instant. Numbers and times are absent while they are not known.
type Place struct {
	Known     bool       `json:"known" doc:"Whether the start can be told."`
	Position  *int       `json:"position,omitempty" doc:"Runs of the pool that start before it."`
	StartP10  *time.Time `json:"startP10,omitempty" doc:"It starts earlier with a probability of 10 %."`
	StartP50  *time.Time `json:"startP50,omitempty"`
	StartP90  *time.Time `json:"startP90,omitempty"`
	Reason    string     `json:"reason,omitempty" doc:"Why it waits: waiting_turn, budget, tenant_cap, pool_offline, dependency, concurrency_key, array_limit, not_before, quota, reserved_for_head, never_fits, pool_draining."`
	Until     *time.Time `json:"until,omitempty" doc:"When the reason ends by itself, if that is known."`
	Detail    string     `json:"detail,omitempty" doc:"The reason in words."`
	AsOf      *time.Time `json:"asOf,omitempty"`
	CostMicro int64      `json:"costMicro,omitempty" doc:"Money held when it starts, in millionths: the pool's price times the time limit."`
}

// Run is a tenant's wish to have something run, and what became of it.
type Run struct {
	ID              string            `json:"id"`
	Tenant          string            `json:"tenant"`
	State           string            `json:"state" enum:"queued,active,succeeded,failed,interrupted,cancelled,expired"`
	Reason          string            `json:"reason,omitempty"`
	Pool            string            `json:"pool"`
	Package         string            `json:"package,omitempty" doc:"name@version, as resolved at the submit."`
	Class           string            `json:"class"`
	Priority        int               `json:"priority,omitempty"`
	Array           string            `json:"array,omitempty" doc:"Id of the array it is an element of."`
	Index           *int              `json:"index,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	CreatedAt       time.Time         `json:"createdAt"`
	CreatedBy       string            `json:"createdBy"`
	NotBefore       *time.Time        `json:"notBefore,omitempty"`
	StartedAt       *time.Time        `json:"startedAt,omitempty" doc:"Start of the payload in the last Attempt."`
	EndedAt         *time.Time        `json:"endedAt,omitempty"`
	CancelRequested bool              `json:"cancelRequested,omitempty"`
	Attempts        []Attempt         `json:"attempts,omitempty"`
	Results         []Result          `json:"results,omitempty" doc:"Verified; present once it succeeded."`
	Place           *Place            `json:"place,omitempty" doc:"While queued."`
	SpentMicro      int64             `json:"spentMicro,omitempty" doc:"Cost of all its Attempts, in millionths."`
	Spec            *NewRun           `json:"spec,omitempty" doc:"What was asked for; in the answer for one Run."`
	Progress        *Progress         `json:"progress,omitempty"`
}

// Progress is what a payload says of itself.
type Progress struct {
	Fraction float64   `json:"fraction" minimum:"0" maximum:"1"`
	Message  string    `json:"message,omitempty"`
	At       time.Time `json:"at"`
}

// Attempt is one try at a Run on one runner.
type Attempt struct {
	ID         string     `json:"id"`
	Number     int        `json:"number"`
	State      string     `json:"state" enum:"assigned,starting,running,finalizing,succeeded,failed,interrupted,cancelled"`
	Reason     string     `json:"reason,omitempty"`
	Detail     string     `json:"detail,omitempty"`
	Runner     string     `json:"runner"`
	ExitCode   *int       `json:"exitCode,omitempty"`
	AssignedAt time.Time  `json:"assignedAt"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	EndedAt    *time.Time `json:"endedAt,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`
	CostMicro  int64      `json:"costMicro,omitempty"`
}

// Usage is what an Attempt used, as measured around it and not by it.
type Usage struct {
	WallMillis   int64 `json:"wallMillis"`
	CPUMillis    int64 `json:"cpuMillis"`
	MemoryBytes  int64 `json:"memoryBytes" doc:"The most at one time."`
	WrittenBytes int64 `json:"writtenBytes,omitempty"`
	LogBytes     int64 `json:"logBytes,omitempty"`
}

// Result is one verified output of a Run.
type Result struct {
	Name      string `json:"name"`
	Path      string `json:"path" doc:"Where to GET it; a large one waits its turn like any download."`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType,omitempty"`
}

// RunEvent is one step in the life of a Run.
type RunEvent struct {
	Seq     int64     `json:"seq" doc:"Counts up within the Run; the id of the event in a stream."`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"submitted, assigned, starting, running, progress, cancel_requested, finalizing, retry, or a state the Run ended in."`
	Attempt string    `json:"attempt,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

// LogLine is one line that a payload wrote. Secrets are masked before it is stored.
type LogLine struct {
	Seq     int64     `json:"seq" doc:"Counts up within the Run, over its Attempts."`
	Attempt string    `json:"attempt"`
	At      time.Time `json:"at"`
	Stream  string    `json:"stream" enum:"stdout,stderr,system"`
	Text    string    `json:"text"`
}

// Submitted is the answer of a submit.
type Submitted struct {
	Runs    []Run     `json:"runs" nullable:"false" doc:"The Runs that were made; of an array the first hundred."`
	Array   string    `json:"array,omitempty" doc:"Id of the array, if it is one."`
	Count   int       `json:"count" doc:"How many Runs were made."`
	Repeat  bool      `json:"repeat,omitempty" doc:"The Idempotency-Key was seen before; these are the Runs of that time."`
	DryRun  bool      `json:"dryRun,omitempty"`
	Blocked []Blocker `json:"blockers,omitempty" doc:"Of a dry run: what would keep it from starting now."`
}

// Blocker is one thing that keeps a Run from starting.
type Blocker struct {
	Reason string     `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// HeaderTraceparent comes with a submit and is given to the payload.
const HeaderTraceparent = "traceparent"
