package api

import "time"

// Pool is runners that share work, with its rules of admission.
type Pool struct {
	Name      string     `json:"name" pattern:"^[a-z0-9][a-z0-9-]{0,62}$"`
	Tenant    string     `json:"tenant,omitempty" doc:"The owner of a customer's own pool; empty for one that all tenants may use."`
	Policy    PoolPolicy `json:"policy" doc:"What was set."`
	Effective PoolPolicy `json:"effective" doc:"What holds: the policy with every default."`
	State     string     `json:"state" enum:"open,draining,drained,offline" doc:"offline: no runner was heard of within its lease."`
	DrainBy   *time.Time `json:"drainBy,omitempty" doc:"What still runs then is stopped."`
	Revision  int64      `json:"revision"`
	CreatedAt time.Time  `json:"createdAt"`
	Runners   int        `json:"runners" doc:"Heard of within their lease."`
	Capacity  Resources  `json:"capacity" doc:"Of those runners together."`
	Used      Resources  `json:"used"`
	Queued    int        `json:"queued"`
	Active    int        `json:"active"`
	OldestAge float64    `json:"oldestSeconds" doc:"Age of the oldest eligible Run."`
}

// PoolPolicy is what an operator, or the owner of an own pool, may set. 0 means the default.
type PoolPolicy struct {
	Excess          string `json:"excess,omitempty" enum:"reject,queue" doc:"What happens to a submit over a soft bound: 429 (reject), or queued up to the hard bound (queue, the default)."`
	TenantSoftDepth int    `json:"tenantSoftDepth,omitempty" minimum:"0" maximum:"10000000" doc:"Queued Runs of one tenant; 1,000 by default."`
	TenantHardDepth int    `json:"tenantHardDepth,omitempty" minimum:"0" maximum:"10000000" doc:"10,000 by default; above it always 429."`
	SoftDepth       int    `json:"softDepth,omitempty" minimum:"0" maximum:"10000000" doc:"Queued Runs of all tenants; 10,000 by default."`
	HardDepth       int    `json:"hardDepth,omitempty" minimum:"0" maximum:"10000000" doc:"100,000 by default."`
	SoftAge         int64  `json:"softAgeSeconds,omitempty" minimum:"0" doc:"Age of the tenant's oldest eligible Run; an hour by default."`
	MaxAge          int64  `json:"maxAgeSeconds,omitempty" minimum:"0" doc:"A Run that was eligible for so long expires; a week by default."`
	PriceMicro      int64  `json:"priceMicroPerSlotSecond,omitempty" minimum:"0" doc:"Millionths of the currency for a second of a slot."`
	Network         bool   `json:"network,omitempty" doc:"Payloads may use the network."`
	DefaultTimeout  int64  `json:"defaultTimeoutSeconds,omitempty" minimum:"0" doc:"An hour by default."`
	MaxTimeout      int64  `json:"maxTimeoutSeconds,omitempty" minimum:"0" doc:"A day by default."`
	DefaultMemory   int64  `json:"defaultMemoryBytes,omitempty" minimum:"0" doc:"512 MiB by default."`
	DefaultDisk     int64  `json:"defaultDiskBytes,omitempty" minimum:"0" doc:"1 GiB by default."`
	DefaultMilliCPU int64  `json:"defaultMilliCpu,omitempty" minimum:"0" doc:"1000 by default."`
	LogBytes        int64  `json:"logBytes,omitempty" minimum:"0" doc:"Of one Attempt; 16 MiB by default."`
	Pids            int64  `json:"pids,omitempty" minimum:"0" doc:"Of one Attempt; 256 by default."`
}

// PoolChange is the body of PUT /api/v1/pools/{name}; revision 0 makes the pool.
type PoolChange struct {
	ExpectedRevision int64      `json:"expectedRevision"`
	Tenant           string     `json:"tenant,omitempty" doc:"When it is made: the owner of an own pool."`
	Policy           PoolPolicy `json:"policy"`
}

// PoolShare is a tenant's part of a pool.
type PoolShare struct {
	Pool     string `json:"pool"`
	Tenant   string `json:"tenant"`
	Weight   int64  `json:"weight" minimum:"1" maximum:"10000" doc:"Of its turns, against the other tenants' weights; 100 by default."`
	MaxSlots int64  `json:"maxSlots,omitempty" minimum:"0" doc:"Slots it may hold at once; 0: no cap."`
}

// Budget is money that a tenant may spend on Runs.
type Budget struct {
	Tenant     string `json:"tenant"`
	LimitMicro int64  `json:"limitMicro" minimum:"0" doc:"In millionths of the currency."`
	SpentMicro int64  `json:"spentMicro" doc:"Settled."`
	HeldMicro  int64  `json:"heldMicro" doc:"Held by living Attempts."`
	Revision   int64  `json:"revision"`
}

// ShareChange is the body of PUT /api/v1/pools/{pool}/shares/{tenant}.
type ShareChange struct {
	Weight   int64 `json:"weight" minimum:"1" maximum:"10000"`
	MaxSlots int64 `json:"maxSlots,omitempty" minimum:"0" maximum:"1000000" doc:"0: no cap."`
}

// BudgetChange is the body of PUT /api/v1/budgets/{tenant}; revision 0 makes the budget.
type BudgetChange struct {
	ExpectedRevision int64 `json:"expectedRevision" minimum:"0"`
	LimitMicro       int64 `json:"limitMicro" minimum:"0" doc:"In millionths of the currency."`
}

// RunnerDrain is the body of POST /api/v1/runners/{runner}/drain.
type RunnerDrain struct {
	Resume bool `json:"resume,omitempty" doc:"End the drain."`
}

// Runner is a process that runs Attempts of one pool.
type Runner struct {
	ID        string            `json:"id"`
	Pool      string            `json:"pool"`
	Name      string            `json:"name"`
	State     string            `json:"state" enum:"online,draining,lost,revoked"`
	Capacity  Resources         `json:"capacity"`
	Used      Resources         `json:"used"`
	Labels    map[string]string `json:"labels,omitempty"`
	Version   string            `json:"version,omitempty"`
	Attempts  int               `json:"attempts"`
	CreatedAt time.Time         `json:"createdAt"`
	SeenAt    *time.Time        `json:"seenAt,omitempty"`
}

// RunnerToken lets one runner register itself with a pool, once. Token is present only in the answer that made it.
type RunnerToken struct {
	ID        string    `json:"id"`
	Pool      string    `json:"pool"`
	Token     string    `json:"token,omitempty"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// PoolDrain is the body of POST /api/v1/pools/{name}/drain.
type PoolDrain struct {
	DeadlineSeconds int64 `json:"deadlineSeconds" minimum:"0" maximum:"604800" doc:"What still runs then is stopped; 0: never."`
	Resume          bool  `json:"resume,omitempty" doc:"End the drain."`
}

// TenantShare is how fairly a tenant was served by a pool, in dominant-share-seconds per weight.
type TenantShare struct {
	Tenant  string  `json:"tenant"`
	Weight  int64   `json:"weight"`
	Served  float64 `json:"served"`
	Error   float64 `json:"error" doc:"Largest difference to another tenant that waited all the while."`
	Bound   float64 `json:"bound" doc:"What the error may be at most: the longest Run of each of the two by its weight, added."`
	Formula string  `json:"formula"`
}
