package sdk

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// What a call may end with, beside the server's own refusals. Test with errors.Is.
var (
	ErrQueueDeadline = errors.New("queue_deadline")     // the download can't start before NotAfter (D-5.1)
	ErrWaitLimit     = errors.New("wait_limit")         // still busy when the caller's wait limit was over (D-1.1)
	ErrIntegrity     = errors.New("integrity_mismatch") // the bytes are not those the digest names
	ErrChanged       = errors.New("object_changed")     // the server's object is no longer the one asked for
	ErrNetwork       = errors.New("network")            // the server couldn't be reached, or the retry budget is spent
	ErrLocal         = errors.New("local_io")           // this machine's disk or files
	ErrLocked        = errors.New("locked")             // another process is downloading to the same file
)

// Error is a refusal by the server. Code and Reason are those of the wire contract; Code is empty when the answer
// didn't come from a Roadstead server (a proxy, for example).
type Error struct {
	Status     int
	Code       string
	Reason     string
	Message    string
	Details    []api.Detail
	RetryAfter time.Duration // zero when the server didn't say
	RequestID  string

	queue    *api.Wait
	hasRetry bool // Retry-After was present, even if zero
}

// Error says what happened, with the fields at fault.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Message != "":
		b.WriteString(e.Message)
	case e.Code != "":
		b.WriteString(e.Code)
	default:
		fmt.Fprintf(&b, "the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	for _, d := range e.Details {
		if !strings.Contains(e.Message, d.Problem) {
			fmt.Fprintf(&b, " [%s: %s]", d.Field, d.Problem)
		}
	}
	return b.String()
}

// Is lets a refusal match the sentinels that mean the same.
func (e *Error) Is(target error) bool {
	return target == ErrIntegrity && e.Code == "integrity_mismatch"
}

// busy reports "come later" (D-1.1): 429 or 503 by its code, or any 429/503 with Retry-After whose body doesn't say
// it is something else; proxies answer so without knowing our codes.
func (e *Error) busy() bool {
	if e.Status != http.StatusServiceUnavailable && e.Status != http.StatusTooManyRequests {
		return false
	}
	switch e.Code {
	case "busy", "rate_limited":
		return true
	case "":
		return e.hasRetry
	}
	return false
}

// transient reports answers that count as real faults and are retried from the budget (D-1.2).
func (e *Error) transient() bool {
	switch e.Status {
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return e.Code == ""
	}
	return false
}

// connectionError is a broken connection, a refused one, or an attempt that timed out.
type connectionError struct{ err error }

func (e *connectionError) Error() string        { return e.err.Error() }
func (e *connectionError) Unwrap() error        { return e.err }
func (e *connectionError) Is(target error) bool { return target == ErrNetwork }

// broken marks an error as a real fault of the way to the server. A certificate that isn't trusted is not one: asking
// again doesn't mend it.
func broken(err error) error {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fail(ErrNetwork, err, "the server's certificate is not trusted")
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address: that of a link is a secret
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = fmt.Errorf("the connection broke: %w", err)
	}
	return &connectionError{err}
}

// failure is one of the sentinels with a sentence of its own.
type failure struct {
	kind error
	text string
	err  error
}

func (f *failure) Error() string {
	if f.err != nil {
		return f.text + ": " + f.err.Error()
	}
	return f.text
}
func (f *failure) Unwrap() error        { return f.err }
func (f *failure) Is(target error) bool { return target == f.kind }

func fail(kind, cause error, format string, args ...any) error {
	return &failure{kind: kind, err: cause, text: fmt.Sprintf(format, args...)}
}

// refusal reads an answer that is not a success. It never fails: what can't be read is left out.
func refusal(resp *http.Response, now time.Time) *Error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get(api.HeaderRequestID)}
	if text := resp.Header.Get("Retry-After"); text != "" {
		e.RetryAfter, e.hasRetry = ParseRetryAfter(text, now)
	}
	e.queue = queueHeaders(resp.Header)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var p api.Problem
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return e
	}
	e.Code, e.Reason, e.Message, e.Details = p.Code, p.Reason, p.Message, p.Details
	if p.Queue != nil {
		e.queue = p.Queue
	}
	if p.RequestID != "" {
		e.RequestID = p.RequestID
	}
	if !e.hasRetry && p.RetryAfterSeconds > 0 {
		e.RetryAfter, e.hasRetry = min(time.Duration(p.RetryAfterSeconds), maxSeconds)*time.Second, true
	}
	return e
}

// queueHeaders reads the place and the start from the headers, for answers whose body was lost on the way (D-2.3).
func queueHeaders(h http.Header) *api.Wait {
	position, okPlace := digits(h.Get(api.HeaderQueuePosition))
	start, err := time.Parse(time.RFC3339, h.Get(api.HeaderStartsAt))
	if !okPlace || position == 0 || err != nil {
		return nil
	}
	return &api.Wait{Known: true, Position: int(position), StartsAt: &start, Class: h.Get(api.HeaderDownloadClass)}
}
