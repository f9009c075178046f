package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
)

// journal is the digest of everything the machine decided and when; two runs are the same if their digests are.
type journal struct {
	sum   hash.Hash
	buf   []byte
	count int
}

func newJournal() *journal { return &journal{sum: sha256.New()} }

// numbers adds a record of instants and numbers.
func (j *journal) numbers(at clock.Mono, values ...int64) {
	j.buf = binary.BigEndian.AppendUint64(j.buf[:0], uint64(at))
	for _, v := range values {
		j.buf = binary.BigEndian.AppendUint64(j.buf, uint64(v))
	}
	j.sum.Write(j.buf)
	j.count++
}

// effect adds a decision.
func (j *journal) effect(at clock.Mono, e session.Effect) {
	promised := int64(0)
	if e.Promised {
		promised = 1
	}
	j.numbers(at, int64(e.Kind), int64(e.Class), int64(e.RetryAfter), int64(e.Waited), promised,
		int64(e.Earliest), int64(e.Latest), int64(e.Point), int64(len(e.Bound)))
	j.sum.Write(e.Key[:])
	j.sum.Write([]byte(e.Bound))
}

// estimate adds what a client was told.
func (j *journal) estimate(at clock.Mono, e session.Estimate) {
	known := int64(0)
	if e.Known {
		known = 1
	}
	j.numbers(at, known, int64(e.Position), int64(e.Start), int64(e.Earliest), int64(e.Latest), int64(e.Check), int64(e.Arrival))
}

// digest is the hash so far, in hex.
func (j *journal) digest() string { return hex.EncodeToString(j.sum.Sum(nil)) }
