// Package ticket signs a download's place in the queue, so that a client can carry it over a restart of the server.
package ticket

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The times of the wire format (D-8.2).
const (
	Life  = 15 * time.Minute // how long after its issue a ticket is good
	Ahead = 2 * time.Minute  // how far another server's clock may run ahead of ours
)

const (
	version = "2"
	maxLen  = 80             // version, two 13-digit times, a 43-digit signature and three dots are 73
	maxTime = int64(1) << 53 // milliseconds; keeps every time.Time of a ticket far from overflow
)

// Signer makes and checks tickets. It is safe for concurrent use.
type Signer struct{ macs *sync.Pool }

// New makes a signer. Servers that share the key accept each other's tickets (D-8.3).
func New(key []byte) Signer {
	key = bytes.Clone(key)
	// Every poll has one ticket checked and another made, so the key is scheduled once and not for each.
	return Signer{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// Sign vouches that the session has been waiting since arrival. An arrival after the issue is lowered to it, so that
// no ticket claims a future that a check would reject (D-8.2). Both are wall times, kept to the millisecond; times
// before 1970 count as 1970.
func (s Signer) Sign(session [16]byte, arrival, issued time.Time) string {
	iss := max(0, issued.UnixMilli())
	arr := min(max(0, arrival.UnixMilli()), iss)
	sum := s.sum(session, arr, iss)
	return version + "." + strconv.FormatInt(arr, 36) + "." + strconv.FormatInt(iss, 36) + "." +
		base64.RawURLEncoding.EncodeToString(sum[:])
}

// Verify gives the arrival a ticket vouches for. It is not ok when the ticket is malformed, is of another session or
// key, was issued more than 15 minutes ago or more than 2 minutes ahead of now, or claims an arrival after its issue.
// A caller ignores such a ticket: the download queues anew (D-8.2).
func (s Signer) Verify(ticket string, session [16]byte, now time.Time) (arrival time.Time, ok bool) {
	arr, iss, sum, ok := parse(ticket)
	if !ok {
		return time.Time{}, false
	}
	want := s.sum(session, arr, iss)
	if !hmac.Equal(sum[:], want[:]) {
		return time.Time{}, false
	}
	age := now.UnixMilli() - iss
	if arr > iss || age > Life.Milliseconds() || -age > Ahead.Milliseconds() {
		return time.Time{}, false
	}
	// An issue slightly ahead counts as now, and so does an arrival ahead.
	return time.UnixMilli(min(arr, now.UnixMilli())).UTC(), true
}

// sum is the HMAC over the session's hash and both times, each of fixed width.
func (s Signer) sum(session [16]byte, arrival, issued int64) (out [sha256.Size]byte) {
	mac := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	var msg [32]byte
	copy(msg[:16], session[:])
	binary.BigEndian.PutUint64(msg[16:], uint64(arrival))
	binary.BigEndian.PutUint64(msg[24:], uint64(issued))
	mac.Write(msg[:])
	mac.Sum(out[:0])
	return out
}

// parse takes a ticket apart. Only the form that Sign writes is accepted, so that a ticket has one spelling.
func parse(ticket string) (arrival, issued int64, sum [sha256.Size]byte, ok bool) {
	if len(ticket) > maxLen {
		return 0, 0, sum, false
	}
	part := strings.Split(ticket, ".")
	if len(part) != 4 || part[0] != version || len(part[3]) != base64.RawURLEncoding.EncodedLen(len(sum)) {
		return 0, 0, sum, false
	}
	arrival, ok1 := parseTime(part[1])
	issued, ok2 := parseTime(part[2])
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part[3])
	if !ok1 || !ok2 || err != nil || len(raw) != len(sum) { // the decoder skips line breaks, so raw can be short
		return 0, 0, sum, false
	}
	copy(sum[:], raw)
	return arrival, issued, sum, true
}

func parseTime(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 36, 64)
	return v, err == nil && v >= 0 && v <= maxTime && strconv.FormatInt(v, 36) == s
}
