package api

import "time"

// RunnerProtocol is the version of what a runner and a server say to each other. A server speaks this version and the
// one before it; a runner of another version is refused at its first call with both numbers.
const RunnerProtocol = 1

// HeaderFence carries the fence of an Attempt in the calls of a runner that have no JSON body.
const HeaderFence = "Roadstead-Fence"

// ReasonLeaseLost is the reason in the refusal (409) of every call with an old fence: stop the payload.
const ReasonLeaseLost = "lease_lost"

// RegisterRunner is the body of POST /api/v1/runners/register. The token is used up by it.
type RegisterRunner struct {
	Token    string            `json:"token"`
	Name     string            `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"`
	Capacity Resources         `json:"capacity"`
	Labels   map[string]string `json:"labels,omitempty"`
	Protocol int               `json:"protocol"`
	Version  string            `json:"version,omitempty"`
}

// RegisteredRunner is the answer: who the runner is from now on.
type RegisteredRunner struct {
	Runner           string `json:"runner"`
	Key              string `json:"key" doc:"Its own key, shown once; sent as Authorization: Bearer."`
	Pool             string `json:"pool"`
	Protocol         int    `json:"protocol"`
	LeaseSeconds     int64  `json:"leaseSeconds"`
	HeartbeatSeconds int64  `json:"heartbeatSeconds"`
}

// Exchange is the body of POST /api/v1/runner/exchange: one call renews every lease, acknowledges assignments and
// waits for news. A runner that acknowledges is alive; an open socket alone says nothing.
type Exchange struct {
	Protocol     int         `json:"protocol"`
	Acknowledged int64       `json:"acknowledged" doc:"Sequence of the last assignment that was taken over and kept on the runner's disk."`
	Holds        []HeldLease `json:"holds" nullable:"false" doc:"Every Attempt the runner has."`
	Capacity     *Resources  `json:"capacity,omitempty" doc:"When it changed."`
	WaitSeconds  int64       `json:"waitSeconds,omitempty" minimum:"0" maximum:"30" doc:"How long the answer may be held until there is news."`
	Draining     bool        `json:"draining,omitempty" doc:"The runner takes nothing new."`
}

// HeldLease is an Attempt that a runner has.
type HeldLease struct {
	Attempt string `json:"attempt"`
	Fence   int64  `json:"fence"`
}

// Exchanged is the answer.
type Exchanged struct {
	Sequence     int64        `json:"sequence" doc:"Of the last assignment below."`
	Assignments  []Assignment `json:"assignments" nullable:"false"`
	Orders       []Order      `json:"orders" nullable:"false"`
	LeaseSeconds int64        `json:"leaseSeconds" doc:"What a renewal is worth, from the moment before the call was sent."`
	Drain        bool         `json:"drain,omitempty" doc:"The pool or this runner is drained: finish and take nothing new."`
	DrainSeconds int64        `json:"drainSeconds,omitempty" doc:"What is left until the drain's deadline, when what still runs is stopped."`
}

// Assignment is an Attempt for this runner. It is repeated until acknowledged.
type Assignment struct {
	Attempt   string    `json:"attempt"`
	Run       string    `json:"run"`
	Fence     int64     `json:"fence"`
	Sequence  int64     `json:"sequence"`
	Resources Resources `json:"resources"`
}

// Order tells a runner to do something about an Attempt it has.
type Order struct {
	Attempt string `json:"attempt"`
	Order   string `json:"order" enum:"cancel,lost" doc:"cancel: TERM, then KILL after the grace; lost: the lease is another's, KILL at once and report nothing."`
}

// Fenced is the body of a runner's call that says nothing but which Attempt it is.
type Fenced struct {
	Fence int64 `json:"fence"`
}

// Job is the answer of POST /api/v1/runner/attempts/{attempt}/starting: leave to start, and what.
type Job struct {
	Attempt        string            `json:"attempt"`
	Run            string            `json:"run"`
	Tenant         string            `json:"tenant"`
	Number         int               `json:"number"`
	Command        []string          `json:"command"`
	Env            map[string]string `json:"env" nullable:"false"`
	Package        *JobObject        `json:"package,omitempty" doc:"tar.gz to unpack as the working folder."`
	Image          *JobObject        `json:"image,omitempty" doc:"OCI image layout (tar) that is the root."`
	Inputs         []JobInput        `json:"inputs" nullable:"false"`
	Outputs        []Output          `json:"outputs" nullable:"false"`
	Secrets        []string          `json:"secrets" nullable:"false" doc:"Names; their values are fetched apart."`
	Checkpoint     *JobObject        `json:"checkpoint,omitempty" doc:"The last complete one of the Attempts before."`
	CheckpointName string            `json:"checkpointName,omitempty" doc:"The file's name, as the job gave it."`
	Resources      Resources         `json:"resources"`
	Timeout        int64             `json:"timeoutSeconds"`
	Grace          int64             `json:"graceSeconds"`
	LogBytes       int64             `json:"logBytes"`
	Pids           int64             `json:"pids"`
	Network        bool              `json:"network,omitempty"`
	Traceparent    string            `json:"traceparent,omitempty"`
}

// JobObject is bytes that a runner may fetch for one Attempt, by GET /api/v1/runner/attempts/{attempt}/objects/{digest}.
type JobObject struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// JobInput becomes a file below the input folder.
type JobInput struct {
	Path   string     `json:"path"`
	Value  string     `json:"value,omitempty" doc:"The content, when it is not an object."`
	Object *JobObject `json:"object,omitempty"`
}

// JobSecrets is the answer of POST /api/v1/runner/attempts/{attempt}/secrets.
type JobSecrets struct {
	Secrets map[string][]byte `json:"secrets" nullable:"false"`
}

// JobLogs is the body of POST /api/v1/runner/attempts/{attempt}/logs. Lines are numbered by the runner, from 1; what
// was stored before is passed over.
type JobLogs struct {
	Fence    int64     `json:"fence"`
	First    int64     `json:"first" minimum:"1"`
	Lines    []JobLine `json:"lines" maxItems:"10000" nullable:"false"`
	Progress *Progress `json:"progress,omitempty"`
}

// JobLine is one line of a payload's output.
type JobLine struct {
	At     time.Time `json:"at"`
	Stream string    `json:"stream" enum:"stdout,stderr,system"`
	Text   string    `json:"text"`
}

// JobReport is the body of POST /api/v1/runner/attempts/{attempt}/report: how the payload ended. The runner repeats it
// until it hears 200, or 409: the Attempt is not its own any more, or ended otherwise.
type JobReport struct {
	Fence    int64       `json:"fence"`
	Outcome  string      `json:"outcome" enum:"exited,failed,interrupted,cancelled" doc:"exited: the payload ended by itself with exitCode; failed: we ended it or it could not start, for the reason; interrupted: nobody knows; cancelled: as ordered."`
	Reason   string      `json:"reason,omitempty" doc:"timeout, out_of_memory, out_of_disk, log_limit, cannot_start, killed, drained."`
	Detail   string      `json:"detail,omitempty" maxLength:"2000"`
	ExitCode int         `json:"exitCode"`
	Usage    Usage       `json:"usage"`
	Manifest []JobResult `json:"manifest" nullable:"false" maxItems:"1000" doc:"What was uploaded as results under this Attempt."`
}

// JobResult is one line of a ResultManifest.
type JobResult struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// JobReported is the answer: what the server made of it.
type JobReported struct {
	State  string `json:"state" doc:"The Attempt's state now; finalizing while the results are being verified."`
	Reason string `json:"reason,omitempty"`
}

// NewGrant is the body of POST /api/v1/runner/attempts/{attempt}/grants: leave to upload one object of that size and
// digest. Asking again for the same gives the same.
type NewGrant struct {
	Fence  int64  `json:"fence"`
	Kind   string `json:"kind" enum:"result,checkpoint"`
	Name   string `json:"name"`
	Digest string `json:"digest" pattern:"^sha256:[0-9a-f]{64}$"`
	Size   int64  `json:"size" minimum:"0"`
}

// UploadGrant is the answer.
type UploadGrant struct {
	Grant     string    `json:"grant"`
	Path      string    `json:"path" doc:"Where to PUT the bytes, with the grant as Authorization: Bearer."`
	ExpiresAt time.Time `json:"expiresAt"`
	Done      bool      `json:"done,omitempty" doc:"The object is there already."`
}
