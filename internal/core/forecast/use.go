package forecast

import (
	"math"
	"time"

	"github.com/roadstead/roadstead/internal/clock"
)

const (
	useMemory = 15 * time.Minute // counts for about so long
	useTrust  = time.Minute      // of a link that is taken to be full, before anything is known
	useGap    = 10 * time.Second // longer without a look says nothing
	useLate   = time.Second      // bytes are told up to so much late
	useLeast  = 0.1              // of the link; less is not judged
)

// Use measures how much of what the link can carry it does carry while somebody waits: seats of clients that fell
// silent, or that are a moment late, are lost to those who wait. The zero value has seen nothing.
type Use struct {
	at       clock.Mono
	told     int64   // bytes carried ever, as told last
	wanted   bool    // somebody waited then
	carried  float64 // bytes, older ones counting less
	capacity float64 // bytes that could have been
}

// See takes the bytes ever carried, now; rate is what the link can, wanted says that somebody waits who may start.
func (u *Use) See(now clock.Mono, carried, rate int64, wanted bool) {
	passed := now.Sub(u.at)
	if u.wanted && wanted && passed <= useGap {
		fade := math.Exp(-passed.Seconds() / useMemory.Seconds())
		could := float64(rate) * passed.Seconds()
		u.carried = u.carried*fade + min(float64(carried-u.told), could+float64(rate)*useLate.Seconds())
		u.capacity = u.capacity*fade + could
	}
	u.at, u.told, u.wanted = now, carried, wanted
}

// Part is the part of the rate that is carried, up to 1. A link on which next to nothing flows is not judged: that says
// more of its present readers than of those to come.
func (u *Use) Part(rate int64) float64 {
	if u.capacity == 0 || u.carried < useLeast*u.capacity {
		return 1
	}
	trust := float64(rate) * useTrust.Seconds()
	return min((u.carried+trust)/(u.capacity+trust), 1)
}
