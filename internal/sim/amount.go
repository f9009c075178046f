package sim

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roadstead/roadstead/internal/class"
)

// Sizes is a uniform distribution of object sizes in bytes; Min equals Max for a fleet of equal files. It is written
// "8GB" or "4GB-20GB".
type Sizes struct{ Min, Max int64 }

// Rate is a number of bytes per second, written in bits ("1Gbit") or bytes ("40MB"); "0" means no limit.
type Rate int64

// Mix is how the fleet divides into classes, written "interactive=0.1,bulk=0.9"; the shares add up to 1.
type Mix [class.Count]float64

// unit is a suffix and how many bytes it stands for.
type unit struct {
	suffix string
	bytes  float64
}

// sizeUnits and rateUnits list longer suffixes first, so that "GiB" is not read as "B".
func sizeUnits() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
	}
}

func rateUnits() []unit {
	return append([]unit{{"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"Tbit", 125e9}}, sizeUnits()...)
}

// parseAmount reads a number followed by one of the units, letter case aside. The number must be plain decimal:
// strconv alone would also take "1e9", "0x1p4" and "Inf".
func parseAmount(s string, units []unit) (int64, error) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	v, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		return 0, fmt.Errorf("%q does not start with a number", s)
	}
	suffix := strings.TrimSpace(s[end:])
	for _, u := range units {
		if !strings.EqualFold(suffix, u.suffix) {
			continue
		}
		if v *= u.bytes; v > math.MaxInt64/2 {
			return 0, fmt.Errorf("%q is too large", s)
		}
		return int64(math.Round(v)), nil
	}
	return 0, fmt.Errorf("%q has an unknown unit", s)
}

// Set reads the written form.
func (z *Sizes) Set(s string) error {
	low, high, between := strings.Cut(s, "-")
	if !between {
		high = low
	}
	from, err := parseAmount(low, sizeUnits())
	if err == nil {
		var to int64
		if to, err = parseAmount(high, sizeUnits()); err == nil {
			if from > to {
				return fmt.Errorf("the smaller size comes first, as in 4GB-20GB")
			}
			*z = Sizes{from, to}
			return nil
		}
	}
	return fmt.Errorf("%w; the form is 8GB or 4GB-20GB", err)
}

// String is the written form.
func (z Sizes) String() string {
	if z.Min == z.Max {
		return written(z.Min)
	}
	return written(z.Min) + "-" + written(z.Max)
}

// written gives the largest decimal unit that divides n, so that reading it again loses nothing.
func written(n int64) string {
	for _, u := range []unit{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if n != 0 && n%int64(u.bytes) == 0 {
			return strconv.FormatInt(n/int64(u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Type names the form in the help.
func (*Sizes) Type() string { return "size" }

// MarshalText is the written form.
func (z Sizes) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// Set reads the written form; "/s" after it is allowed.
func (r *Rate) Set(s string) error {
	n, err := parseAmount(strings.TrimSuffix(strings.TrimSpace(s), "/s"), rateUnits())
	if err != nil {
		return fmt.Errorf("%w; the form is 1Gbit or 40MB (a second)", err)
	}
	*r = Rate(n)
	return nil
}

// String is the written form.
func (r Rate) String() string { return written(int64(r)) }

// Type names the form in the help.
func (*Rate) Type() string { return "rate" }

// MarshalText is the written form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Set reads the written form.
func (m *Mix) Set(s string) error {
	const form = "the form is interactive=0.1,bulk=0.9, adding up to 1"
	var mix Mix
	sum := 0.0
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return errors.New(form)
		}
		c, err := class.Parse("class", name)
		if err != nil {
			return fmt.Errorf("%q is not a class; %s", name, form)
		}
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return fmt.Errorf("%q is not a share between 0 and 1; %s", value, form)
		}
		mix[c] += share
		sum += share
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the shares add up to %g; %s", sum, form)
	}
	*m = mix
	return nil
}

// String is the written form.
func (m Mix) String() string {
	var parts []string
	for _, c := range class.All() {
		if m[c] > 0 {
			parts = append(parts, c.String()+"="+strconv.FormatFloat(m[c], 'g', -1, 64))
		}
	}
	return strings.Join(parts, ",")
}

// Type names the form in the help.
func (*Mix) Type() string { return "mix" }

// MarshalText is the written form.
func (m Mix) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// pick gives the class at a point between 0 and 1.
func (m Mix) pick(at float64) class.Class {
	last := class.Release
	for _, c := range class.All() {
		if m[c] == 0 {
			continue
		}
		if last = c; at < m[c] {
			return c
		}
		at -= m[c]
	}
	return last
}
