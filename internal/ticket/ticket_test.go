package ticket

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

var (
	key  = []byte("0123456789abcdef0123456789abcdef")
	sess = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	base = time.UnixMilli(1_790_000_000_123).UTC()
)

// The golden ticket fixes the wire format: clients keep tickets in files across upgrades of the server (D-8.1).
// The signature was computed independently:
//
//	printf '0102030405060708090a0b0c0d0e0f10000001a0c4506c7b000001a0c455005b' | xxd -r -p |
//	  openssl dgst -sha256 -mac HMAC -macopt key:0123456789abcdef0123456789abcdef -binary | basenc --base64url
const golden = "2.mubbs7ln.mubbyn2z.QhjThlw0E4D6B2IIwRaA_kB6oMXmCKep6jhUE3fA40E"

// Sign writes that format, and Verify reads it (D-8.1).
func TestGolden(t *testing.T) {
	if got := New(key).Sign(sess, base, base.Add(5*time.Minute)); got != golden {
		t.Fatalf("ticket\n got %s\nwant %s", got, golden)
	}
}

// A ticket is good for its own session only, for fifteen minutes after its issue, and never for an arrival after that (D-8.2).
func TestVerify(t *testing.T) {
	s := New(key)
	other := sess
	other[15]++
	issue := base.Add(time.Hour)
	good := s.Sign(sess, base, issue)
	// forged has a right signature over an arrival after its issue, which Sign itself never makes.
	forged := func(arrival, issued time.Time) string {
		a := s.Sign(sess, base, issued)
		b := s.Sign(sess, arrival, arrival)
		p, q := strings.Split(a, "."), strings.Split(b, ".")
		sum := s.sum(sess, arrival.UnixMilli(), issued.UnixMilli())
		return p[0] + "." + q[1] + "." + p[2] + "." + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	cases := []struct {
		name   string
		ticket string
		sess   [16]byte
		now    time.Time
		ok     bool
		want   time.Time
	}{
		{"fresh", good, sess, issue, true, base},
		{"at the end of its life", good, sess, issue.Add(Life), true, base},
		{"past its life", good, sess, issue.Add(Life + time.Millisecond), false, base},
		{"issued 2 minutes ahead", good, sess, issue.Add(-Ahead), true, base},
		{"issued further ahead", good, sess, issue.Add(-Ahead - time.Millisecond), false, base},
		{"arrival ahead counts as now", s.Sign(sess, issue, issue), sess, issue.Add(-time.Minute), true, issue.Add(-time.Minute)},
		{"arrival after issue", forged(issue.Add(time.Millisecond), issue), sess, issue, false, base},
		{"arrival clamped to issue", s.Sign(sess, issue.Add(time.Hour), issue), sess, issue, true, issue},
		{"a wait of days", s.Sign(sess, base.Add(-72*time.Hour), issue), sess, issue, true, base.Add(-72 * time.Hour)},
		{"another session", good, other, issue, false, base},
		{"another key", New([]byte("x")).Sign(sess, base, issue), sess, issue, false, base},
		{"empty", "", sess, issue, false, base},
		{"other version", "1" + good[1:], sess, issue, false, base},
		{"upper case time", strings.ToUpper(good[:12]) + good[12:], sess, issue, false, base},
		{"signed time", strings.Replace(good, "2.", "2.+", 1), sess, issue, false, base},
		{"leading zero", strings.Replace(good, "2.", "2.0", 1), sess, issue, false, base},
		{"padded", good + "=", sess, issue, false, base},
		{"fifth part", good + ".x", sess, issue, false, base},
		{"cut", good[:len(good)-1], sess, issue, false, base},
		{"newline inside", good[:20] + "\n" + good[20:], sess, issue, false, base},
		{"long", good + strings.Repeat("A", 1<<16), sess, issue, false, base},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, ok := s.Verify(c.ticket, c.sess, c.now)
			if ok != c.ok || (ok && !got.Equal(c.want)) {
				t.Fatalf("Verify = %v, %v; want %v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// Every single changed byte makes a ticket worthless: it can't be moved to an earlier place (D-8.2).
func TestTampered(t *testing.T) {
	s := New(key)
	good := s.Sign(sess, base, base)
	for i := range good {
		for _, b := range []byte{'0', 'A', 'z', '.', 0} {
			if bad := good[:i] + string(b) + good[i+1:]; bad != good {
				if _, ok := s.Verify(bad, sess, base); ok {
					t.Fatalf("accepted %q", bad)
				}
			}
		}
	}
}

// A renewal keeps the arrival and lives on; the old ticket does not (D-8.2).
func TestRenewal(t *testing.T) {
	s := New(key)
	now := base
	tick := s.Sign(sess, base, now)
	for range 100 {
		now = now.Add(14 * time.Minute)
		arr, ok := s.Verify(tick, sess, now)
		if !ok || !arr.Equal(base) {
			t.Fatalf("arrival %v, %v", arr, ok)
		}
		tick = s.Sign(sess, arr, now)
	}
}

func FuzzVerify(f *testing.F) {
	s := New(key)
	f.Add(s.Sign(sess, base, base))
	f.Add(golden)
	f.Add("2.0.0.")
	f.Add("2.-1.zzzzzzzzzzzzz.AAAA")
	f.Fuzz(func(t *testing.T, in string) {
		arr, ok := s.Verify(in, sess, base)
		if ok && s.Sign(sess, arr, mustIssue(t, in)) != in {
			t.Fatalf("%q is accepted but is not what Sign writes", in)
		}
	})
}

func mustIssue(t *testing.T, in string) time.Time {
	t.Helper()
	_, iss, _, ok := parse(in)
	if !ok {
		t.Fatalf("%q verified but does not parse", in)
	}
	return time.UnixMilli(iss)
}
