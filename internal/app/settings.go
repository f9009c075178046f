package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve"
)

// Setting is one thing an operator can set, by four names: key in a file, flag, environment variable, field of Config.
type Setting struct {
	Key   string // in a file, for example maxDownloads
	Usage string // one line, with the default's meaning where it is not plain
	set   func(c *Config, name, value string) error
	get   func(c *Config) string
}

// Env is the environment variable, by the documents' name after the prefix.
func (s Setting) Env() string { return envOf(s.Key) }

// Flag is the command line flag without its dashes.
func (s Setting) Flag() string { return split(s.Key, '-') }

func envOf(key string) string { return "ROADSTEAD_" + strings.ToUpper(split(key, '_')) }

// split puts a separator before each capital letter: maxDownloads, max-downloads. TLS stays one word.
func split(key string, sep byte) string {
	var b strings.Builder
	for _, c := range key {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte(sep)
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Settings lists every setting in the order they are shown.
func Settings() []Setting {
	return []Setting{
		text("data", "directory of database, files and keys", func(c *Config) *string { return &c.Data }),
		text("listen", "address to serve on, HOST:PORT", func(c *Config) *string { return &c.Listen }),
		text("tlsCertFile", "PEM certificate chain; read again when it changes", func(c *Config) *string { return &c.TLSCertFile }),
		text("tlsKeyFile", "PEM key of the certificate", func(c *Config) *string { return &c.TLSKeyFile }),
		{Key: "trustedProxies", Usage: "addresses or networks whose forwarding headers count", set: setProxies, get: getProxies},
		size("diskReserve", "bytes of disk kept free of uploads", 0, math.MaxInt64, func(c *Config) *int64 { return &c.DiskReserve }),
		seconds("drainSeconds", "how long a stopping server lets running downloads finish", 0, 86400, func(c *Config) *time.Duration { return &c.Drain }),
		{Key: "logLevel", Usage: "debug, info, warn or error", set: setLevel, get: func(c *Config) string { return c.LogLevel }},
		number("maxDownloads", "requests for small objects served at once", 1, 65536, func(c *Config) *int { return &c.MaxDownloads }),
		number("maxDownloadSessions", "seats: downloads of large objects served at once; 0: as maxDownloads", 0, 65536, func(c *Config) *int { return &c.MaxDownloadSessions }),
		number("maxDownloadsPerPrincipal", "seats of one principal while others wait; 0: four, or all of fewer", 0, 65536, func(c *Config) *int { return &c.MaxDownloadsPerPrincipal }),
		size("downloadSessionMinBytes", "larger objects queue for a seat", 0, 1<<40, func(c *Config) *int64 { return &c.SessionMinBytes }),
		seconds("downloadHoldSeconds", "how long a request without a download id is held before it is answered busy", 0, 3600, func(c *Config) *time.Duration { return &c.Hold }),
		number("transferQueueLimit", "requests held at once", 1, 65536, func(c *Config) *int { return &c.TransferQueueLimit }),
		number("downloadQueueLimit", "download sessions in all", 1, 1<<20, func(c *Config) *int { return &c.DownloadQueueLimit }),
		{Key: "downloadClassWeights", Usage: "turns of interactive, release, bulk and background, all four", set: setWeights, get: getWeights},
		number("downloadReserve", "seats kept for interactive; -1: one from four seats on", -1, 65535, func(c *Config) *int { return &c.Reserve }),
		seconds("downloadIdleSeconds", "pause after which a download gives its seat back", 1, 3600, func(c *Config) *time.Duration { return &c.Idle }),
		number("downloadRangesPerSession", "responses of one download at once", 1, 64, func(c *Config) *int { return &c.RangesPerSession }),
		{Key: "downloadStrategy", Usage: "who starts next: ordered, smallest-first, or shared for no queue at all", set: setStrategy, get: func(c *Config) string { return c.Strategy }},
		{Key: "downloadAgingMinutes", Usage: "waiting this long raises a download, once per as long again; 0: never", set: setAging, get: func(c *Config) string { return strconv.Itoa(int(c.Aging / time.Minute)) }},
		{Key: "downloadPreempt", Usage: "a seat may be taken back between two ranges: true or false", set: yesOrNo(func(c *Config) *bool { return &c.Preempt }), get: func(c *Config) string { return strconv.FormatBool(c.Preempt) }},
		{Key: "downloadJournal", Usage: "places in the queue are kept in the database over a restart: true or false", set: yesOrNo(func(c *Config) *bool { return &c.Journal }), get: func(c *Config) string { return strconv.FormatBool(c.Journal) }},
		size("downloadMinRate", "bytes per second that a seat asks of its reader; a slower one moves aside while others wait; 0: none", 0, 1<<40, func(c *Config) *int64 { return &c.MinRate }),
		number("downloadPollBudget", "polls a second that all who wait are told to make together; 0: no such bound", 0, 1<<20, func(c *Config) *int { return &c.PollBudget }),
		text("runnerDir", "directory of the runner inside this server; empty: one in data, or as root one below /var/lib/roadstead", func(c *Config) *string { return &c.RunnerDir }),
		number("runnerSlots", "slots of the runner inside this server; 0: none, -1: one for each CPU", -1, 4096, func(c *Config) *int { return &c.RunnerSlots }),
		seconds("runnerLeaseSeconds", "a runner that says nothing for this long, and half of it more (at most 15), has lost what it runs", 6, 3600, func(c *Config) *time.Duration { return &c.RunnerLease }),
		seconds("runnerHeartbeatSeconds", "how often runners say that they live; the lease is at least three times that", 1, 30, func(c *Config) *time.Duration { return &c.RunnerHeartbeat }),
		size("bandwidth", "bytes per second in all; 0: no ceiling", 0, 1<<40, func(c *Config) *int64 { return &c.Bandwidth }),
		size("bandwidthPerPrincipal", "bytes per second of one principal; 0: no ceiling", 0, 1<<40, func(c *Config) *int64 { return &c.BandwidthPerPrincipal }),
	}
}

func text(key, usage string, field func(*Config) *string) Setting {
	return Setting{
		Key: key, Usage: usage,
		set: func(c *Config, name, v string) error {
			if strings.ContainsAny(v, "\x00\n") {
				return fault.Invalid(name, "must be one line")
			}
			*field(c) = v
			return nil
		},
		get: func(c *Config) string { return *field(c) },
	}
}

func number(key, usage string, lo, hi int, field func(*Config) *int) Setting {
	return Setting{
		Key: key, Usage: usage,
		set: func(c *Config, name, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < lo || n > hi {
				return fault.Invalid(name, "must be a whole number between %d and %d, is %q", lo, hi, v)
			}
			*field(c) = n
			return nil
		},
		get: func(c *Config) string { return strconv.Itoa(*field(c)) },
	}
}

func seconds(key, usage string, lo, hi int, field func(*Config) *time.Duration) Setting {
	return Setting{
		Key: key, Usage: usage,
		set: func(c *Config, name, v string) error {
			n, err := strconv.Atoi(strings.TrimSuffix(v, "s"))
			if err != nil || n < lo || n > hi {
				return fault.Invalid(name, "must be a number of seconds between %d and %d, is %q", lo, hi, v)
			}
			*field(c) = time.Duration(n) * time.Second
			return nil
		},
		get: func(c *Config) string { return strconv.Itoa(int(*field(c) / time.Second)) },
	}
}

func size(key, usage string, lo, hi int64, field func(*Config) *int64) Setting {
	return Setting{
		Key: key, Usage: usage,
		set: func(c *Config, name, v string) error {
			n, ok := ParseSize(v)
			if !ok || n < lo || n > hi {
				return fault.Invalid(name, "must be a number of bytes between %d and %d, such as 40MB or 1GiB, is %q", lo, hi, v)
			}
			*field(c) = n
			return nil
		},
		get: func(c *Config) string { return strconv.FormatInt(*field(c), 10) },
	}
}

// ParseSize reads bytes with an optional unit: kB, MB, GB, TB by thousands, KiB, MiB, GiB, TiB by 1024.
func ParseSize(s string) (int64, bool) {
	units := []struct {
		suffix string
		factor int64
	}{
		{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
		{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
	}
	digits, factor := strings.ToLower(strings.TrimSpace(s)), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, false
	}
	return n * factor, true
}

func setProxies(c *Config, name, v string) (err error) {
	c.TrustedProxies, err = serve.ParseProxies(name, v)
	return err
}

func getProxies(c *Config) string {
	var out []string
	for _, p := range c.TrustedProxies {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

func setLevel(c *Config, name, v string) error {
	switch v {
	case "debug", "info", "warn", "error":
		c.LogLevel = v
		return nil
	}
	return fault.Invalid(name, "must be debug, info, warn or error, is %q", v)
}

func setStrategy(c *Config, name, v string) error {
	switch v {
	case api.StrategyOrdered, api.StrategySmallestFirst, api.StrategyShared:
		c.Strategy = v
		return nil
	}
	return fault.Invalid(name, "must be ordered, smallest-first or shared, is %q", v)
}

func setAging(c *Config, name, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 60*24*30 {
		return fault.Invalid(name, "must be a number of minutes between 0 and %d, is %q", 60*24*30, v)
	}
	c.Aging = time.Duration(n) * time.Minute
	return nil
}

// yesOrNo is the setter of a switch.
func yesOrNo(field func(*Config) *bool) func(c *Config, name, v string) error {
	return func(c *Config, name, v string) error {
		switch v {
		case "true", "false":
			*field(c) = v == "true"
			return nil
		}
		return fault.Invalid(name, "must be true or false, is %q", v)
	}
}

// setWeights takes all four at once, so that no weight is left over from elsewhere (D-4.1).
func setWeights(c *Config, name, v string) error {
	bad := fault.Invalid(name, "must be four whole numbers between 1 and 100 for interactive, release, bulk, background, such as 8,4,2,1, is %q", v)
	parts := strings.Split(v, ",")
	if len(parts) != class.Count {
		return bad
	}
	var out [class.Count]uint32
	for i, p := range parts {
		n, err := strconv.ParseUint(strings.TrimSpace(p), 10, 32)
		if err != nil || n < 1 || n > 100 {
			return bad
		}
		out[i] = uint32(n)
	}
	c.ClassWeights = out
	return nil
}

func getWeights(c *Config) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.ClassWeights), " ", ","), "[]")
}
