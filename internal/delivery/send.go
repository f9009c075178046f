package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/roadstead/roadstead/internal/governor"
)

// Options of one response.
type Options struct {
	// Idle ends a response whose socket accepts nothing for that long while the governor offered bytes (D-2.8).
	Idle time.Duration
	// OnSent hears of bytes on their way to the client (see ConnContext), and of 0 when the socket accepted some that
	// are not there yet, and every two seconds while the governor holds the response back: such a session is not idle.
	// The counts of a whole response add up to Result.Bytes. It is called from Send's goroutine.
	OnSent func(n int64)
}

// Result is what became of a response.
type Result struct {
	Status   int
	From, To int64 // the span delivered whole (D-2.7); empty when it was cut, or its ranges do not join into one
	Whole    bool  // everything promised was accepted by the socket
	Bytes    int64 // of the content, accepted by the socket
}

// Send writes the answer. A body goes through the flow, slice by slice; without a body the flow may be nil, and a
// refusal is sent without one (a caller that renders faults uses SetHeader and Refusal instead).
//
// An error that is http.ErrAbortHandler came after the header: the caller, its books done, must panic with
// http.ErrAbortHandler, so that a short body is never ended cleanly. At any other error nothing was written.
func Send(w http.ResponseWriter, r *http.Request, a *Answer, flow *governor.Flow, o Options) (Result, error) {
	res := Result{Status: a.Status}
	if !a.Body {
		a.SetHeader(w.Header())
		w.WriteHeader(a.Status)
		res.Whole = true
		return res, nil
	}
	file, err := a.content.Open()
	if err != nil {
		return res, fmt.Errorf("open %s: %w", a.content.Name, err)
	}
	defer file.Close() // read only: nothing to lose
	t := newTransfer(w, r, a, file, flow, o)
	err = t.run(r.Context())
	if more := t.meter.rest(); more > 0 && err == nil { // of a cut response they got lost on the way
		t.tell(more)
	}
	res.Bytes = t.meter.sent
	if err != nil {
		err = fmt.Errorf("send %s: %w", a.content.Name, err)
		if t.begun {
			err = errors.Join(err, http.ErrAbortHandler)
		}
		return res, err
	}
	res.Whole = true
	res.From, res.To = joined(a.parts)
	return res, nil
}

// joined is the one interval that parts make up, or an empty one.
func joined(parts []part) (from, to int64) {
	from, to = parts[0].from, parts[0].to
	for grown := true; grown; {
		grown = false
		for _, p := range parts {
			if p.from <= to && p.to >= from && (p.from < from || p.to > to) {
				from, to, grown = min(from, p.from), max(to, p.to), true
			}
		}
	}
	for _, p := range parts {
		if p.from < from || p.to > to {
			return 0, 0
		}
	}
	return from, to
}
