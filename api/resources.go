package api

import "time"

// Whoami is the answer of GET /api/v1/whoami.
type Whoami struct {
	ID       string `json:"id"`
	Kind     string `json:"kind" enum:"user,service,link"`
	Name     string `json:"name"`
	Tenant   string `json:"tenant"`
	Class    string `json:"class" doc:"The highest class this principal may use."`
	Operator bool   `json:"operator"`
	Role     string `json:"tenantRole,omitempty" doc:"admin: says what the tenant keeps, such as its secrets; otherwise absent."`
	Version  string `json:"version" doc:"The server's version."`
}

// Tenant owns repositories, users and service accounts.
type Tenant struct {
	ID        string    `json:"id"`
	Name      string    `json:"name" pattern:"^[a-z0-9][a-z0-9-]{0,62}$"`
	CreatedAt time.Time `json:"createdAt"`
}

// Account is a user or a service account.
type Account struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind" enum:"user,service"`
	Tenant    string    `json:"tenant"`
	Name      string    `json:"name"`
	Class     string    `json:"class"`
	Operator  bool      `json:"operator"`
	Disabled  bool      `json:"disabled"`
	Role      string    `json:"tenantRole,omitempty" doc:"admin: says what the tenant keeps, such as its secrets; otherwise absent."`
	Revision  int64     `json:"revision" doc:"Revision of the policy; a change names the one it replaces."`
	CreatedAt time.Time `json:"createdAt"`
}

// Key is an API key. Secret is present only in the answer that made it.
type Key struct {
	ID        string     `json:"id"`
	Account   string     `json:"account"`
	Name      string     `json:"name"`
	Secret    string     `json:"secret,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	LastUsed  *time.Time `json:"lastUsedAt,omitempty"`
}

// Repository holds files.
type Repository struct {
	Name      string    `json:"name"`
	Tenant    string    `json:"tenant"`
	Role      string    `json:"role" enum:"read,write,admin" doc:"The caller's role here."`
	CreatedAt time.Time `json:"createdAt"`
}

// Grant gives an account a role on a repository.
type Grant struct {
	Repository string `json:"repository"`
	Account    string `json:"account"`
	Role       string `json:"role" enum:"read,write,admin"`
}

// File is one path of a repository at its current revision.
type File struct {
	Repository string    `json:"repository"`
	Path       string    `json:"path"`
	Revision   int64     `json:"revision"`
	Digest     string    `json:"digest" doc:"sha256:<hex> of the content."`
	Size       int64     `json:"size"`
	MediaType  string    `json:"mediaType"`
	CreatedAt  time.Time `json:"createdAt"`
	CreatedBy  string    `json:"createdBy"`
	Deleted    bool      `json:"deleted,omitempty" doc:"In a list of revisions: this one is the deletion of the path."`
}

// Page is one page of a listing; pass Next as after to get the next one. Next is empty on the last page.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty"`
}

// ShareLink gives whoever holds its token one file, pinned to the revision it was made for.
type ShareLink struct {
	ID         string     `json:"id"`
	Repository string     `json:"repository"`
	Path       string     `json:"path"`
	Revision   int64      `json:"revision"`
	URL        string     `json:"url,omitempty" doc:"Present only in the answer that made the link."`
	CreatedAt  time.Time  `json:"createdAt"`
	CreatedBy  string     `json:"createdBy"`
	ExpiresAt  *time.Time `json:"expiresAt,omitempty"`
	RevokedAt  *time.Time `json:"revokedAt,omitempty"`
}

// Queue is the operator's view of the download queue (D-11.2).
type Queue struct {
	Strategy     string       `json:"strategy"`
	Admission    string       `json:"admission" doc:"sessions, or per-request while the strategy is shared."`
	Seats        int          `json:"seats"`
	SeatsInUse   int          `json:"seatsInUse"`
	Reserve      int          `json:"reserve"`
	PerPrincipal int          `json:"perPrincipal"`
	RateBytes    int64        `json:"rateBytesPerSecond" doc:"The rate estimates are made with."`
	Classes      []QueueClass `json:"classes" nullable:"false"`
	DrainsAt     *time.Time   `json:"drainsAt,omitempty" doc:"When the waiting queue would be empty if nothing else came; absent when not known."`
	SizeGini     *float64     `json:"sizeGini,omitempty" doc:"How unlike the waiting sizes are: 0 all alike, near 1 a few are nearly everything. Absent while fewer than two wait."`
	Advice       string       `json:"advice,omitempty" doc:"A better strategy for what waits now, if there is one."`
	TickSeconds  float64      `json:"lastTickSeconds"`
	AsOf         time.Time    `json:"asOf"`

	Estimates *QueueEstimates `json:"estimates,omitempty" doc:"How good the start estimates were; absent before the first start that was waited for."`
}

// QueueEstimates holds the last starts that were waited for against what was told of each first (D-6.3).
type QueueEstimates struct {
	Starts   int     `json:"starts" doc:"How many of the last ones are counted, 1024 at most."`
	Known    float64 `json:"known" doc:"Share of them of which a start was told beforehand."`
	Inside   float64 `json:"inside" doc:"Of those, the share inside the first interval told."`
	UnderP10 float64 `json:"underP10" doc:"Of those, the share before the first p10 told; a tenth is right."`
	UnderP90 float64 `json:"underP90" doc:"Of those, the share not after the first p90 told; nine tenths are right."`
}

// QueueClass is one class of the queue.
type QueueClass struct {
	Class           string  `json:"class"`
	Weight          int     `json:"weight"`
	Waiting         int     `json:"waiting"`
	Active          int     `json:"active"`
	Aside           int     `json:"aside" doc:"Slow readers served without a seat."`
	Paused          int     `json:"paused"`
	Held            int     `json:"held" doc:"Requests without an id that the server holds open."`
	WaitingBytes    int64   `json:"waitingBytes"`
	HeadWaitSeconds float64 `json:"headWaitSeconds" doc:"How long the first in its order has waited."`
}
