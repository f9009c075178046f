// Package fault is the one vocabulary of refusals: every error a caller may act on carries a code, the field at
// fault and, for "come later", how long to wait. Protocols only render it (design: wire contract).
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of refusal this is; it is part of the wire contract and never changes its meaning.
type Code string

// The codes of the wire contract. Status maps each to its HTTP status.
const (
	InvalidInput        Code = "invalid_input"
	Unauthorized        Code = "unauthorized"
	Forbidden           Code = "forbidden"
	NotFound            Code = "not_found" // also "exists, but is not yours"
	Conflict            Code = "conflict"
	AlreadyExists       Code = "already_exists"
	RevisionMismatch    Code = "revision_mismatch"
	PreconditionFails   Code = "precondition_failed"
	RangeInvalid        Code = "range_not_satisfiable"
	IntegrityMismatch   Code = "integrity_mismatch"
	IdempotencyMismatch Code = "idempotency_mismatch" // a repeated Idempotency-Key came with another body
	TooLarge            Code = "too_large"
	RateLimited         Code = "rate_limited"
	Busy                Code = "busy"
	CapacityExceeded    Code = "capacity_exceeded"
	ReadOnly            Code = "read_only"
	Internal            Code = "internal"
)

// Status is the HTTP status of the code on the native API.
func (c Code) Status() int {
	switch c {
	case InvalidInput:
		return 400
	case Unauthorized:
		return 401
	case Forbidden:
		return 403
	case NotFound:
		return 404
	case ReadOnly:
		return 405
	case Conflict, AlreadyExists, RevisionMismatch:
		return 409
	case PreconditionFails:
		return 412
	case TooLarge:
		return 413
	case RangeInvalid:
		return 416
	case IntegrityMismatch, IdempotencyMismatch:
		return 422
	case RateLimited:
		return 429
	case Busy:
		return 503
	case CapacityExceeded:
		return 507
	default:
		return 500
	}
}

// Detail names one wrong field and what is allowed instead.
type Detail struct {
	Field   string
	Problem string
}

// Error is a refusal. Message is shown to the caller; Err, when set, is for the log only.
type Error struct {
	Code       Code
	Reason     string        // machine-readable cause inside the code, for example "download_queued"
	Message    string        // says what happened and what to do
	Details    []Detail      // fields at fault
	RetryAfter time.Duration // when to come back; always set for Busy and RateLimited
	Err        error         // the cause; never shown to the caller
}

func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	for _, d := range e.Details {
		s += fmt.Sprintf(" [%s: %s]", d.Field, d.Problem)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes a refusal with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid says that one field has a value that is not allowed; problem names the allowed form.
func Invalid(field, problem string, args ...any) *Error {
	p := fmt.Sprintf(problem, args...)
	return &Error{Code: InvalidInput, Message: field + ": " + p, Details: []Detail{{Field: field, Problem: p}}}
}

// Missing says that the thing does not exist or is not the caller's; the two are never told apart.
func Missing(what string) *Error {
	return &Error{Code: NotFound, Message: what + " not found"}
}

// Later says "not now, come back after wait" (D-1.1). It is not a failure of the request.
func Later(code Code, reason string, wait time.Duration, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, RetryAfter: wait, Message: fmt.Sprintf(format, args...)}
}

// Wrap hides a cause behind a code: the caller sees the message, the log sees the cause.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// From finds the refusal inside err; an error without one is Internal.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Message: "internal error", Err: err}
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
