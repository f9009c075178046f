package catalog

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
)

// The order of the keys is the order of versions that semver.org gives as its example, and numbers go by value.
func TestPrecedence(t *testing.T) {
	last := ""
	for i, v := range []string{
		"0.0.0-0", "0.0.0", "0.0.1", "0.2.0", "0.10.0", "1.0.0-0", "1.0.0-2", "1.0.0-11", "1.0.0--", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
		"1.0.0-alpha-1", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1-x", "1.2.0", "1.10.0", "2.0.0", "10.0.0", "999999999999999999.0.0",
	} {
		if err := CheckVersion("v", v); err != nil {
			t.Fatal(err)
		}
		key, pre := precedence(v)
		if pre != strings.Contains(v, "-") {
			t.Errorf("%s: prerelease %v", v, pre)
		}
		if i > 0 && key <= last {
			t.Errorf("%s is not above the one before (%q, %q)", v, key, last)
		}
		last = key
	}
	for _, v := range []string{"", "1", "1.0", "v1.0.0", "1.0.0+x", "1.0.00", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0-a_b", "1000000000000000000.0.0", "1.0.0-" + strings.Repeat("a", 100)} {
		if CheckVersion("v", v) == nil {
			t.Errorf("%q passes", v)
		}
	}
}

// compare is the specification's own text as code, to compare the keys with.
func compare(a, b string) int {
	coreA, preA, _ := strings.Cut(a, "-")
	coreB, preB, _ := strings.Cut(b, "-")
	as, bs := strings.Split(coreA, "."), strings.Split(coreB, ".")
	for i := range 3 {
		x, _ := strconv.ParseUint(as[i], 10, 64)
		y, _ := strconv.ParseUint(bs[i], 10, 64)
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	if preA == "" || preB == "" {
		return cmp.Compare(len(preB), len(preA))
	}
	as, bs = strings.Split(preA, "."), strings.Split(preB, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.ParseUint(as[i], 10, 64)
		y, errY := strconv.ParseUint(bs[i], 10, 64)
		c := 0
		switch {
		case errX == nil && errY == nil:
			c = cmp.Compare(x, y)
		case errX == nil:
			c = -1
		case errY == nil:
			c = 1
		default:
			c = cmp.Compare(as[i], bs[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func FuzzPrecedence(f *testing.F) {
	f.Add("1.0.0-alpha.1", "1.0.0-alpha-1")
	f.Add("1.0.0", "1.0.0--")
	f.Fuzz(func(t *testing.T, a, b string) {
		if CheckVersion("a", a) != nil || CheckVersion("b", b) != nil {
			return
		}
		x, _ := precedence(a)
		y, _ := precedence(b)
		want := compare(a, b)
		if got := cmp.Compare(x, y); got != min(1, max(-1, want)) {
			t.Fatalf("%s and %s: %d, want %d", a, b, got, want)
		}
	})
}
