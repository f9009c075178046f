package app

import (
	"crypto/tls"
	"net"
	"os"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/serve"
)

// Config is everything an operator can set. Start from Default.
type Config struct {
	Data           string        // directory of database, files and keys
	Listen         string        // address to serve on
	TLSCertFile    string        // PEM certificate chain; empty serves plain HTTP
	TLSKeyFile     string        // PEM key of the certificate
	TrustedProxies serve.Proxies // whose forwarding headers count
	DiskReserve    int64         // bytes of disk kept free of uploads
	Drain          time.Duration // how long a stopping server lets running downloads finish
	LogLevel       string        // debug, info, warn or error

	MaxDownloads             int                 // requests for small objects served at once (D-2.5)
	MaxDownloadSessions      int                 // seats; 0 means as many as MaxDownloads
	MaxDownloadsPerPrincipal int                 // seats of one principal while others wait (D-4.4); 0 means min(4, seats)
	SessionMinBytes          int64               // larger objects queue for a seat (D-2.5)
	Hold                     time.Duration       // how long a request without an id is held (D-2.4)
	TransferQueueLimit       int                 // requests held at once (D-2.4)
	DownloadQueueLimit       int                 // sessions in all (D-7.1)
	ClassWeights             [class.Count]uint32 // turns of each class (D-4.1)
	Reserve                  int                 // seats kept for interactive (D-4.2); -1 means 1 from four seats, else 0
	Idle                     time.Duration       // pause that frees a seat (D-2.8)
	RangesPerSession         int                 // responses of one session at once (D-2.10)
	Strategy                 string              // ordered, smallest-first or shared (D-3)
	Aging                    time.Duration       // waiting this long raises a session (D-3.1); 0 never
	Preempt                  bool                // a seat may be taken back between two ranges (D-4.5)
	MinRate                  int64               // bytes per second that a seat asks of its reader; 0 means none
	PollBudget               int                 // polls per second of all who wait together (D-6.2); 0 means no such bound
	Journal                  bool                // places are kept in the database over a restart
	RunnerDir                string              // of the runner inside this server; empty: see runnerDir
	RunnerSlots              int                 // slots of the runner inside this server; -1: one for each CPU, 0: none
	RunnerLease              time.Duration       // a runner that says nothing for this long, and the grace, has lost its Attempts
	RunnerHeartbeat          time.Duration       // how often runners renew their leases
	Bandwidth                int64               // bytes per second in all; 0 means no ceiling (D-12.2)
	BandwidthPerPrincipal    int64               // bytes per second of one principal; 0 means no ceiling
}

// Default is the configuration of a server that nobody configured.
func Default() Config {
	return Config{
		Data: "data", Listen: "127.0.0.1:8080", DiskReserve: 1 << 30, Drain: 30 * time.Second, LogLevel: "info",
		MaxDownloads: 16, SessionMinBytes: 16 << 20, Hold: 20 * time.Second, TransferQueueLimit: 64, DownloadQueueLimit: 65536,
		ClassWeights: [class.Count]uint32{8, 4, 2, 1}, Reserve: -1, Idle: 30 * time.Second, RangesPerSession: 4,
		Strategy: api.StrategyOrdered, Aging: time.Hour, Preempt: true, Journal: true, MinRate: usualMinRate,
		RunnerSlots: -1, RunnerLease: 90 * time.Second, RunnerHeartbeat: 10 * time.Second,
	}
}

// Seats is the number of seats after defaults.
func (c Config) Seats() int {
	if c.MaxDownloadSessions == 0 {
		return c.MaxDownloads
	}
	return c.MaxDownloadSessions
}

// Share is the per-principal share after defaults (D-4.4).
func (c Config) Share() int {
	if c.MaxDownloadsPerPrincipal == 0 {
		return min(4, c.Seats())
	}
	return c.MaxDownloadsPerPrincipal
}

// leaseGrace is how long beyond its lease an Attempt may be silent: the runner has killed it by then, and a call of its may
// be on the way.
func (c Config) leaseGrace() time.Duration { return min(c.RunnerLease/2, 15*time.Second) }

// usualMinRate keeps a byte now and then from holding a seat while others wait; no line of today is slower.
const usualMinRate = 16 << 10

// SeatMinRate is the minimum rate after defaults: on a thin link the usual one is at most a quarter of a seat's part.
func (c Config) SeatMinRate() int64 {
	if c.MinRate == usualMinRate && c.Bandwidth > 0 {
		return min(c.MinRate, c.Bandwidth/int64(4*c.Seats()))
	}
	return c.MinRate
}

// SeatReserve is the reserve after defaults (D-4.2).
func (c Config) SeatReserve() int {
	if c.Reserve >= 0 {
		return c.Reserve
	}
	if c.Seats() >= 4 {
		return 1
	}
	return 0
}

// Validate checks what one setting alone cannot know: how they fit together. Each setting's own range was checked when
// it was read.
func (c Config) Validate() error {
	if c.Share() > c.Seats() {
		return fault.Invalid(envOf("maxDownloadsPerPrincipal"), "must not exceed the %d seats (%s), is %d", c.Seats(), envOf("maxDownloadSessions"), c.Share())
	}
	if c.SeatReserve() >= c.Seats() {
		return fault.Invalid(envOf("downloadReserve"), "must be lower than the %d seats (%s), is %d", c.Seats(), envOf("maxDownloadSessions"), c.SeatReserve())
	}
	if c.BandwidthPerPrincipal > 0 && c.Bandwidth > 0 && c.BandwidthPerPrincipal > c.Bandwidth {
		return fault.Invalid(envOf("bandwidthPerPrincipal"), "must not exceed %s (%d), is %d", envOf("bandwidth"), c.Bandwidth, c.BandwidthPerPrincipal)
	}
	if c.Bandwidth > 0 && c.SeatMinRate() > c.Bandwidth {
		return fault.Invalid(envOf("downloadMinRate"), "must not exceed %s (%d), is %d", envOf("bandwidth"), c.Bandwidth, c.MinRate)
	}
	for key, rate := range map[string]int64{"bandwidth": c.Bandwidth, "bandwidthPerPrincipal": c.BandwidthPerPrincipal} {
		if rate > 0 && rate < governor.MinRate {
			return fault.Invalid(envOf(key), "must be 0 or at least %d, is %d", governor.MinRate, rate)
		}
	}
	if c.RunnerLease < 3*c.RunnerHeartbeat {
		return fault.Invalid(envOf("runnerLeaseSeconds"), "must be at least three times the %v of %s, so that one lost call costs nothing, is %v",
			c.RunnerHeartbeat, envOf("runnerHeartbeatSeconds"), c.RunnerLease)
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return fault.Invalid(envOf("tlsCertFile"), "must be set together with %s", envOf("tlsKeyFile"))
	}
	if c.TLSCertFile != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile); err != nil {
			return fault.Invalid(envOf("tlsCertFile"), "must name a readable PEM certificate with its key in %s: %v", envOf("tlsKeyFile"), err)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fault.Invalid(envOf("listen"), "must be HOST:PORT: %v", err)
	}
	if info, err := os.Stat(c.Data); err == nil && !info.IsDir() {
		return fault.Invalid(envOf("data"), "must be a directory")
	}
	return nil
}
