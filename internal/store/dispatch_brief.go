package store

import (
	"encoding/json"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/runs"
)

// brief is what dispatching needs of a specification, as it is stored beside it. Whoever takes a pool over reads it of
// every Run that waits, so it is short.
type brief struct {
	Kind       string            `json:"k,omitempty"` // the program of a command
	Resources  api.Resources     `json:"r"`
	Placement  map[string]string `json:"w,omitempty"`
	Timeout    int64             `json:"t,omitempty"`
	Expected   int64             `json:"e,omitempty"`
	Lane       string            `json:"l,omitempty"`
	ArrayLimit int               `json:"a,omitempty"`
	HoldMicro  int64             `json:"h,omitempty"`
	PriceMicro int64             `json:"p,omitempty"`
	NotBefore  *time.Time        `json:"n,omitempty"`
}

func briefOf(s runs.Spec) (text string, err error) {
	b := brief{
		Resources: s.Resources, Placement: s.Placement, Timeout: s.Timeout, Expected: s.Expected, Lane: s.Lane, ArrayLimit: s.ArrayLimit,
		HoldMicro: s.HoldMicro, PriceMicro: s.PriceMicro, NotBefore: s.Request.NotBefore,
	}
	if len(s.Command) > 0 {
		b.Kind = s.Command[0]
	}
	out, err := json.Marshal(b)
	return string(out), err
}

// scanBrief reads a brief into the specification that it was made of; what dispatching doesn't need is missing there.
func scanBrief(text string, s *runs.Spec) error {
	var b brief
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	*s = runs.Spec{
		Resources: b.Resources, Placement: b.Placement, Timeout: b.Timeout, Expected: b.Expected, Lane: b.Lane, ArrayLimit: b.ArrayLimit,
		HoldMicro: b.HoldMicro, PriceMicro: b.PriceMicro, Request: api.NewRun{NotBefore: b.NotBefore},
	}
	if b.Kind != "" {
		s.Command = []string{b.Kind}
	}
	return nil
}
