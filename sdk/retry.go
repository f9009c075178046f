package sdk

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// Retry is the budget for real faults: broken connections, 502 and 504, attempts that time out. Busy answers never
// touch it (D-1.1, D-1.2).
type Retry struct {
	PerOperation   int           // retries in one download or upload; default 20
	PerRequest     int           // retries of one request until the server answers it; default 5
	MinDelay       time.Duration // the first pause, tripled each time; default 1 s
	MaxDelay       time.Duration // the longest pause, and the longest Retry-After obeyed on a fault; default 60 s
	AttemptTimeout time.Duration // an attempt that moves no byte for so long is broken off; default 60 s
}

func (r Retry) withDefaults() Retry {
	if r.PerOperation == 0 {
		r.PerOperation = 20
	}
	if r.PerRequest == 0 {
		r.PerRequest = 5
	}
	if r.MinDelay == 0 {
		r.MinDelay = time.Second
	}
	if r.MaxDelay == 0 {
		r.MaxDelay = time.Minute
	}
	if r.AttemptTimeout == 0 {
		r.AttemptTimeout = time.Minute
	}
	return r
}

// callRetry is the budget of a short call: someone is looking at a prompt. A request that may have had its effect is
// not sent twice.
func callRetry(r Retry, method string) Retry {
	r.PerRequest = min(r.PerRequest, 2)
	if method == http.MethodPost || method == http.MethodPatch {
		r.PerRequest = -1
	}
	return r
}

// Bounds of a busy wait.
const (
	longestWait  = time.Hour              // a longer Retry-After is a proxy's mistake (D-1.4)
	shortestWait = 250 * time.Millisecond // no hot loop, whatever a server says
	unknownWait  = 5 * time.Second        // busy without saying for how long
)

// busyWait is how long to stay away after a busy answer: what the server asks, and at most min(10 %, 5 s) more so
// that a fleet doesn't come back in step (D-1.4).
func busyWait(e *Error) (asked, withJitter time.Duration) {
	asked = e.RetryAfter
	switch {
	case e.queue != nil && e.queue.CheckInMillis > 0: // finer than whole seconds
		asked = time.Duration(min(e.queue.CheckInMillis, longestWait.Milliseconds())) * time.Millisecond
	case !e.hasRetry:
		asked = unknownWait
	}
	asked = min(max(asked, shortestWait), longestWait)
	return asked, asked + rand.N(min(asked/10, 5*time.Second)+1)
}

// operation is one download, upload or call: it keeps the retry budget and the limits on waiting.
type operation struct {
	clock     Clock
	retry     Retry
	emit      func(Event)
	spent     int           // retries used in the operation
	inRequest int           // retries used since the server last answered
	limited   bool          // whether waiting ends at limit
	limit     time.Duration // instant of the monotonic clock
	notAfter  time.Time     // zero: none
}

func (c *Client) operation(retry Retry, emit func(Event)) *operation {
	if emit == nil {
		emit = func(Event) {}
	}
	return &operation{clock: c.clock, retry: retry, emit: emit}
}

// attempt runs f until it succeeds, ends the operation, or the budget is spent.
func (o *operation) attempt(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			o.answered()
			return nil
		}
		if err = o.recoverFrom(ctx, err); err != nil {
			return err
		}
	}
}

// answered forgets the faults of the request that was just answered.
func (o *operation) answered() { o.inRequest = 0 }

// recoverFrom decides what an error means: it waits and returns nil when the request is to be made again, and
// returns the error that ends the operation otherwise.
func (o *operation) recoverFrom(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.busy() {
		o.answered()
		return o.waitBusy(ctx, e)
	}
	return o.spend(ctx, err)
}

// spend takes a retry from the budget and pauses (D-1.2).
func (o *operation) spend(ctx context.Context, err error) error {
	var asked time.Duration
	if _, ok := errors.AsType[*connectionError](err); !ok {
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.transient() || e.RetryAfter > o.retry.MaxDelay {
			return err
		}
		asked = e.RetryAfter
	}
	if o.spent >= o.retry.PerOperation || o.inRequest >= o.retry.PerRequest {
		if o.inRequest == 0 {
			return err // a call that is never repeated has no budget to speak of
		}
		return fail(ErrNetwork, err, "gave up after %d retries of this request (%d in all)", o.inRequest, o.spent)
	}
	pause := max(asked, o.backoff())
	o.spent++
	o.inRequest++
	o.emit(Retrying{Attempt: o.inRequest, Spent: o.spent, In: pause, Err: err})
	return waitFor(ctx, o.clock, pause)
}

// backoff grows threefold with each retry of a request, up to half the longest pause, give or take a fifth: with the
// defaults a server may be away for about a minute before the budget is spent.
func (o *operation) backoff() time.Duration {
	d := o.retry.MinDelay
	for range o.inRequest {
		d = min(d*3, o.retry.MaxDelay/2)
	}
	return d - d/5 + rand.N(d*2/5+1)
}

// waitBusy waits as the server asks; it ends early only on the caller's limits (D-1.1, D-5.1).
func (o *operation) waitBusy(ctx context.Context, e *Error) error {
	asked, wait := busyWait(e)
	w := o.waiting(e, asked)
	o.emit(w)
	if !o.notAfter.IsZero() && w.StartsAt.After(o.notAfter) {
		return fail(ErrQueueDeadline, nil, "the download would start about %s, after the deadline %s",
			w.StartsAt.Local().Format(time.DateTime), o.notAfter.Local().Format(time.DateTime))
	}
	now := o.clock.Mono()
	if o.limited && now >= o.limit {
		return fail(ErrWaitLimit, nil, "still waiting when the wait limit was over")
	}
	// At the limit the server is asked once more: a place may have come free just then.
	if o.limited {
		wait = min(wait, o.limit-now)
	}
	if !o.notAfter.IsZero() {
		left := o.notAfter.Sub(o.clock.Wall())
		if left <= 0 {
			return fail(ErrQueueDeadline, nil, "still in the queue at the deadline %s", o.notAfter.Local().Format(time.DateTime))
		}
		wait = min(wait, left)
	}
	return waitFor(ctx, o.clock, wait)
}

// waiting translates the server's answer into the client's clock: CheckAt and CheckInMillis name the same instant,
// so their difference tells the server's time whatever this machine's clock says.
func (o *operation) waiting(e *Error, asked time.Duration) Waiting {
	w := Waiting{CheckIn: asked, Reason: e.Reason}
	q := e.queue
	if q == nil {
		return w
	}
	now := o.clock.Wall()
	shift := time.Duration(0)
	if q.CheckInMillis > 0 && !q.CheckAt.IsZero() {
		shift = now.Sub(q.CheckAt.Add(-time.Duration(q.CheckInMillis) * time.Millisecond))
	}
	local := func(t *time.Time) time.Time {
		if t == nil || t.IsZero() {
			return time.Time{}
		}
		return t.Add(shift)
	}
	w.Known, w.Position, w.Class = q.Known, q.Position, q.Class
	w.StartsAt, w.Earliest, w.Latest = local(q.StartsAt), local(q.StartsEarliest), local(q.StartsLatest)
	if q.Why != nil {
		why := *q.Why
		if opens := local(why.WindowOpensAt); !opens.IsZero() {
			why.WindowOpensAt = &opens
		}
		w.Why = &why
	}
	return w
}
