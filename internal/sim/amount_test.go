package sim

import (
	"testing"

	"github.com/roadstead/roadstead/internal/class"
)

func TestSizes(t *testing.T) {
	tests := []struct {
		in   string
		want Sizes
		out  string // empty: refused
	}{
		{"8GB", Sizes{8e9, 8e9}, "8GB"},
		{"4GB-20GB", Sizes{4e9, 20e9}, "4GB-20GB"},
		{"1.5 gb", Sizes{1.5e9, 1.5e9}, "1500MB"},
		{"8MiB", Sizes{8 << 20, 8 << 20}, "8388608B"},
		{"17", Sizes{17, 17}, "17B"},
		{"0", Sizes{}, "0B"},
		{"20GB-4GB", Sizes{}, ""}, {"", Sizes{}, ""}, {"GB", Sizes{}, ""}, {"-4GB", Sizes{}, ""},
		{"4GB-", Sizes{}, ""}, {"1e9", Sizes{}, ""}, {"Inf", Sizes{}, ""}, {"0x10", Sizes{}, ""},
		{"4Gbit", Sizes{}, ""}, {"99999999TB", Sizes{}, ""}, {"1.2.3GB", Sizes{}, ""},
	}
	for _, tt := range tests {
		var got Sizes
		err := got.Set(tt.in)
		if (err == nil) != (tt.out != "") {
			t.Errorf("%q: error %v", tt.in, err)
		}
		if err == nil && (got != tt.want || got.String() != tt.out) {
			t.Errorf("%q reads as %v, written %q", tt.in, got, got)
		}
	}
}

func TestRate(t *testing.T) {
	tests := []struct {
		in   string
		want Rate // 0 with a non-zero text: refused
	}{
		{"1Gbit", 125e6}, {"1Gbit/s", 125e6}, {"40MB", 40e6}, {"8 kbit", 1000}, {"1MiB/s", 1 << 20}, {"1000", 1000},
		{"fast", 0}, {"1Gbps", 0}, {"", 0},
	}
	for _, tt := range tests {
		var got Rate
		if err := got.Set(tt.in); (err == nil) != (tt.want != 0) || got != tt.want {
			t.Errorf("%q reads as %d, error %v", tt.in, got, err)
		}
	}
}

func TestMix(t *testing.T) {
	var m Mix
	if err := m.Set("bulk=0.9, interactive=0.1"); err != nil {
		t.Fatal(err)
	}
	if got := m.String(); got != "interactive=0.1,bulk=0.9" {
		t.Errorf("written %q", got)
	}
	for at, want := range map[float64]class.Class{0: class.Interactive, 0.0999: class.Interactive, 0.11: class.Bulk, 0.9999999: class.Bulk} {
		if got := m.pick(at); got != want {
			t.Errorf("at %g is %s, want %s", at, got, want)
		}
	}
	for _, bad := range []string{"", "bulk", "bulk=0.5", "bulk=2", "people=1", "bulk=x", "bulk=NaN", "bulk=-1,release=2", "bulk=1,"} {
		if err := m.Set(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzAmounts(f *testing.F) {
	for _, s := range []string{"8GB", "4GB-20GB", "1Gbit/s", "interactive=0.1,bulk=0.9", "-", "..", "9999999999999999TB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var z Sizes
		if z.Set(s) == nil {
			var again Sizes
			if err := again.Set(z.String()); err != nil || again != z || z.Min < 0 || z.Min > z.Max {
				t.Errorf("%q reads as %v, which reads as %v: %v", s, z, again, err)
			}
		}
		var r Rate
		if r.Set(s) == nil {
			var again Rate
			if err := again.Set(r.String()); err != nil || again != r || r < 0 {
				t.Errorf("%q reads as %d, which reads as %d: %v", s, r, again, err)
			}
		}
		_ = new(Mix).Set(s)
	})
}
