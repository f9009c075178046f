package dispatcher

import (
	"slices"
	"time"
)

// durations learns how long Attempts of one kind take, from the last of them.
type durations struct {
	last map[string][]time.Duration
}

const (
	kept   = 64   // Attempts of one kind that are looked at
	kinds  = 4096 // that are remembered
	quorum = 5    // fewer tell nothing
)

func learn(recent []Duration) *durations {
	d := &durations{last: map[string][]time.Duration{}}
	for i := len(recent) - 1; i >= 0; i-- { // the newest come first
		d.add(recent[i].Kind, recent[i].Took)
	}
	return d
}

// add notes one Attempt. When too many kinds are known, new ones are not learnt until the pool is loaded again.
func (d *durations) add(kind string, took time.Duration) {
	all, known := d.last[kind]
	if !known && len(d.last) >= kinds {
		return
	}
	if len(all) == kept {
		all = all[1:]
	}
	d.last[kind] = append(slices.Clip(all), max(took, time.Millisecond))
}

// of tells the first tenth, the middle and the last tenth; zeros when too little is known.
func (d *durations) of(kind string) (fast, middle, slow time.Duration) {
	if d == nil || len(d.last[kind]) < quorum {
		return 0, 0, 0
	}
	all := slices.Sorted(slices.Values(d.last[kind]))
	at := func(q int) time.Duration { return all[(len(all)-1)*q/10] }
	return at(1), at(5), at(9)
}

// KindOf says which Runs are believed to take alike long: those of one package; commands by their program.
func KindOf(row RunRow) string {
	if row.Run.Package != "" {
		return row.Run.Tenant + " " + row.Run.Package
	}
	if len(row.Spec.Command) > 0 {
		return row.Run.Tenant + " $ " + row.Spec.Command[0]
	}
	return row.Run.Tenant
}
