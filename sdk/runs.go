package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
)

// Submission is what comes with a submit beside the Runs themselves. Its zero value is fine.
type Submission struct {
	Key         string        // Idempotency-Key; empty: one is made. The same key with the same Runs finds those of the first time
	Traceparent string        // W3C trace context for the payload
	WaitLimit   time.Duration // for how long refusals that say to come later are waited out; zero: 15 minutes, negative: not at all
	Events      func(Event)   // Waiting and Retrying; may be nil
}

const defaultSubmitWait = 15 * time.Minute

// Submit makes a Run, or the Runs of an array. It survives faults without making anything twice: every try carries the
// same key. A queue that is full is asked again as it says, up to the wait limit; then the error is
// ErrWaitLimit with the server's last refusal in it.
func (c *Client) Submit(ctx context.Context, run api.NewRun, s Submission) (api.Submitted, error) {
	return c.submit(ctx, "runs", run, s)
}

// SubmitBatch makes all Runs of a batch or none; they refer to each other as @name.
func (c *Client) SubmitBatch(ctx context.Context, batch api.RunBatch, s Submission) (api.Submitted, error) {
	return c.submit(ctx, "runs/batch", batch, s)
}

// Rerun submits what a Run was asked to be once more, by the same door as any submit.
func (c *Client) Rerun(ctx context.Context, run string, s Submission) (api.Submitted, error) {
	return c.submit(ctx, "runs/"+url.PathEscape(run)+"/rerun", nil, s)
}

func (c *Client) submit(ctx context.Context, path string, in any, s Submission) (out api.Submitted, err error) {
	var payload []byte
	if in != nil {
		if payload, err = json.Marshal(in); err != nil {
			return out, fmt.Errorf("write the request: %w", err)
		}
	}
	if s.Key == "" {
		s.Key = NewKey()
	}
	if s.WaitLimit == 0 {
		s.WaitLimit = defaultSubmitWait
	}
	op := c.operation(callRetry(c.retry, http.MethodPut), s.Events) // sent twice it has its effect once
	op.limited, op.limit = true, c.clock.Mono()+s.WaitLimit
	var last error
	err = op.attempt(ctx, func(ctx context.Context) error {
		last = c.callOnce(ctx, http.MethodPost, c.at(apiRoot+path, nil), payload, &out,
			api.HeaderIdempotency, s.Key, api.HeaderTraceparent, s.Traceparent)
		return last
	})
	if errors.Is(err, ErrWaitLimit) {
		err = fail(ErrWaitLimit, last, "not submitted")
	}
	return out, err
}

// Run is one Run with its Attempts, its results, and while it is queued its place, its start and why it waits.
func (c *Client) Run(ctx context.Context, run string) (out api.Run, err error) {
	err = c.call(ctx, http.MethodGet, c.runURL(run, ""), nil, &out)
	return out, err
}

// RunFilter selects Runs; each field that is set narrows it.
type RunFilter struct {
	States  []string // any of them
	Pool    string
	Package string            // name or name@version
	Array   string            // id
	Labels  map[string]string // all of them
	All     bool              // of all tenants; for operators
}

func (f RunFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"pool": f.Pool, "package": f.Package, "array": f.Array} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, state := range f.States {
		q.Add("state", state)
	}
	for name, value := range f.Labels {
		q.Add("label", name+"="+value)
	}
	if f.All {
		q.Set("all", "true")
	}
	return q
}

// Runs lists Runs, the newest first. A page has at most so many; 0: as many as the server gives.
func (c *Client) Runs(ctx context.Context, f RunFilter, page int) iter.Seq2[api.Run, error] {
	q := f.query()
	if page > 0 {
		q.Set("limit", strconv.Itoa(min(page, 1000)))
	}
	return pages[api.Run](ctx, c, "runs", q)
}

// CancelRun ends a queued Run at once and asks for the end of an active one; asking again changes nothing.
func (c *Client) CancelRun(ctx context.Context, run string) (out api.Run, err error) {
	err = c.postAgain(ctx, c.runURL(run, "/cancel"), &out)
	return out, err
}

// CancelRuns cancels every Run that the filter selects and that has not ended, and says how many those were. A filter
// that selects everything is refused.
func (c *Client) CancelRuns(ctx context.Context, f RunFilter) (int, error) {
	q := f.query()
	if len(q) == 0 || len(q) == 1 && f.All {
		return 0, errors.New("name what to cancel: a state, pool, package, array or label")
	}
	var out struct {
		Cancelled int `json:"cancelled"`
	}
	err := c.postAgain(ctx, c.at(apiRoot+"runs/cancel", q), &out)
	return out.Cancelled, err
}

// postAgain is a call without a body that may be sent twice.
func (c *Client) postAgain(ctx context.Context, address string, out any) error {
	op := c.operation(callRetry(c.retry, http.MethodPut), nil)
	return op.attempt(ctx, func(ctx context.Context) error { return c.callOnce(ctx, http.MethodPost, address, nil, out) })
}

// RunEvents lists what happened to a Run after the event with the number seq (0: from the first), up to now.
func (c *Client) RunEvents(ctx context.Context, run string, seq int64) iter.Seq2[api.RunEvent, error] {
	return chapters(ctx, c, c.runURL(run, "/events"), seq, func(e api.RunEvent) int64 { return e.Seq })
}

// RunLogs lists the lines that a Run wrote after the line with the number seq (0: from the first), up to now.
func (c *Client) RunLogs(ctx context.Context, run string, seq int64) iter.Seq2[api.LogLine, error] {
	return chapters(ctx, c, c.runURL(run, "/logs"), seq, func(l api.LogLine) int64 { return l.Seq })
}

// chapters walks something that grows, up to its present end.
func chapters[T any](ctx context.Context, c *Client, address string, seq int64, number func(T) int64) iter.Seq2[T, error] {
	const limit = 1000
	return func(yield func(T, error) bool) {
		for {
			var page struct {
				Items []T  `json:"items"`
				Ended bool `json:"ended"`
			}
			if err := c.call(ctx, http.MethodGet, fmt.Sprintf("%s?after=%d&limit=%d", address, seq, limit), nil, &page); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			from := seq
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
				seq = max(seq, number(item))
			}
			if page.Ended || len(page.Items) < limit || seq == from { // a number that stands still would never end
				return
			}
		}
	}
}

// ResultURL is the address of a result's bytes.
func (c *Client) ResultURL(run, name string) string {
	return c.runURL(run, "/results/"+url.PathEscape(name))
}

// DownloadResult fetches a result of a Run as Download does a file: it waits its turn, resumes, and verifies. The URL
// of the request is set by it; Digest, if the Run's results were read before, insists on what they said.
func (c *Client) DownloadResult(ctx context.Context, run, name string, req Download) (Result, error) {
	req.URL = c.ResultURL(run, name)
	return c.Download(ctx, req)
}

func (c *Client) runURL(run, rest string) string {
	return c.at(apiRoot+"runs/"+url.PathEscape(run)+rest, nil)
}
