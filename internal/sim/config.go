package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/fault"
)

// The strategies a fleet can be run under.
const (
	Ordered = "ordered" // seats and a queue: the download machine decides (D-3.1)
	Shared  = "shared"  // everybody at once, the link split evenly (D-3.3)
)

// sessionMin is the size up to which the server serves requests without a session (D-2.5). Smaller objects never
// reach the queue that is simulated here.
const sessionMin = 16 << 20

// Config describes a fleet, its link and the queue's settings. Start from Default.
type Config struct {
	Clients      int           `json:"clients"`
	Sizes        Sizes         `json:"sizes"`
	Link         Rate          `json:"link"`
	Seats        int           `json:"seats"`
	Reserve      int           `json:"reserve"`      // -1: what the server takes for this many seats (D-4.2)
	PerPrincipal int           `json:"perPrincipal"` // 0: what the server takes for this many seats (D-4.4)
	Principals   int           `json:"principals"`   // 0: each client is a principal of its own
	Classes      Mix           `json:"classes"`
	Spread       time.Duration `json:"-"` // first requests fall evenly into this span
	Latency      time.Duration `json:"-"` // a client's round trip
	ClientRate   Rate          `json:"clientRate"`
	Vanish       float64       `json:"vanish"` // share of clients that leave for good, in the queue or in mid-file
	Stall        float64       `json:"stall"`  // share of clients that fall silent once in mid-file and come back
	Stock        float64       `json:"stock"`  // share of clients without a download id, held by the server (D-2.4)
	Strategy     string        `json:"strategy"`
	Seed         uint64        `json:"seed"`
}

// Default is a small fleet on a gigabit link.
func Default() Config {
	c := Config{
		Clients: 100, Sizes: Sizes{8e9, 8e9}, Link: 125e6, Seats: 4, Reserve: -1,
		Spread: 10 * time.Second, Latency: 20 * time.Millisecond, Strategy: Ordered, Seed: 1,
	}
	c.Classes[class.Release] = 1
	return c
}

// MarshalJSON writes the configuration the way a fleet file holds it.
func (c Config) MarshalJSON() ([]byte, error) {
	type plain Config
	return json.Marshal(struct {
		plain
		Spread  string `json:"spread"`
		Latency string `json:"latency"`
	}{plain(c), c.Spread.String(), c.Latency.String()})
}

// Validate names the first field that cannot work, and the allowed range.
func (c Config) Validate() error {
	between := func(field string, v, lo, hi int64) error {
		if v < lo || v > hi {
			return fault.Invalid(field, "must be between %d and %d, is %d", lo, hi, v)
		}
		return nil
	}
	share := func(field string, v float64) error {
		if !(v >= 0 && v <= 1) {
			return fault.Invalid(field, "must be a share between 0 and 1, is %g", v)
		}
		return nil
	}
	checks := []error{
		between("clients", int64(c.Clients), 1, 65536),
		between("sizes", c.Sizes.Min, sessionMin+1, 1e15), // smaller ones take no session
		between("sizes", c.Sizes.Max, c.Sizes.Min, 1e15),
		between("link", int64(c.Link), 1000, 1e13),
		between("seats", int64(c.Seats), 1, 65536),
		between("reserve", int64(c.Reserve), -1, int64(c.Seats-1)),
		between("perPrincipal", int64(c.PerPrincipal), 0, int64(c.Seats)),
		between("principals", int64(c.Principals), 0, int64(c.Clients)),
		between("clientRate", int64(c.ClientRate), 0, 1e13),
		share("vanish", c.Vanish), share("stall", c.Stall), share("stock", c.Stock),
	}
	if c.Vanish+c.Stall > 1 {
		checks = append(checks, fault.Invalid("stall", "must be at most 1 together with vanish, is %g", c.Vanish+c.Stall))
	}
	if c.Spread < 0 || c.Spread > 30*24*time.Hour {
		checks = append(checks, fault.Invalid("spread", "must be between 0s and 720h, is %s", c.Spread))
	}
	if c.Latency < 0 || c.Latency > time.Minute {
		checks = append(checks, fault.Invalid("latency", "must be between 0s and 1m, is %s", c.Latency))
	}
	if c.Strategy != Ordered && c.Strategy != Shared {
		checks = append(checks, fault.Invalid("strategy", "must be %s or %s, is %q", Ordered, Shared, c.Strategy))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return c.Policy().Validate()
}

// Policy is the machine's policy for this fleet. The bounds on records are lifted to the fleet's size when it is
// larger, since what is studied is the queue and not its refusals.
func (c Config) Policy() session.Policy {
	p := session.Default(c.Seats)
	if c.Reserve >= 0 {
		p.Reserve = c.Reserve
	}
	if c.PerPrincipal > 0 {
		p.PerPrincipal = c.PerPrincipal
	}
	p.MaxPerPrincipal = max(p.MaxPerPrincipal, c.Clients)
	p.LinkRate = int64(c.Link)
	return p
}

// peak is the highest rate one client reaches, in bytes a second; 0 when nothing but the link holds it back. The SDK
// reads range after range, so each range costs a round trip in which its bytes do not flow.
func (c Config) peak() float64 {
	perByte := c.Latency.Seconds() / rangeBytes
	if c.ClientRate > 0 {
		perByte += 1 / float64(c.ClientRate)
	}
	if perByte == 0 {
		return 0
	}
	return 1 / perByte
}

// Line sums the fleet up for a heading.
func (c Config) Line() string {
	return fmt.Sprintf("%d clients x %s over %s/s, %d seats, %s, seed %d", c.Clients, c.Sizes, c.Link, c.Seats, c.Strategy, c.Seed)
}
