package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/roadstead/roadstead/sdk"
)

// Exit codes; they are documented in the help and never change their meaning.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitAuth      = 3
	exitNetwork   = 4 // also busy and deadline (D-5.1)
	exitIntegrity = 5
	exitConflict  = 6
	exitLocal     = 7
	exitCapacity  = 8

	// How a Run ended that was waited for; one that failed is exitFailed.
	exitRunInterrupted = 9
	exitRunCancelled   = 10
	exitRunExpired     = 11

	exitInterrupt = 130
)

var errInterrupted = errors.New("interrupted")

// usageError is a command line that can't be carried out.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// keptError carries what the user should know about bytes that are already there.
type keptError struct {
	err  error
	note string
}

func (e *keptError) Error() string { return e.err.Error() }
func (e *keptError) Unwrap() error { return e.err }

func keptNote(err error) string {
	if k, ok := errors.AsType[*keptError](err); ok {
		return k.note
	}
	return ""
}

// interrupted replaces whatever an operation ended with once it was told to stop.
func interrupted(err error) error {
	if note := keptNote(err); note != "" {
		return &keptError{errInterrupted, note}
	}
	return errInterrupted
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errInterrupted) {
		return exitInterrupt
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if o, ok := errors.AsType[*outcomeError](err); ok {
		return outcomeExit(o.state)
	}
	for _, k := range []struct {
		kind error
		code int
	}{
		{sdk.ErrChanged, exitConflict}, {sdk.ErrIntegrity, exitIntegrity},
		{sdk.ErrLocal, exitLocal}, {sdk.ErrLocked, exitLocal},
		{sdk.ErrQueueDeadline, exitNetwork}, {sdk.ErrWaitLimit, exitNetwork},
	} {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		if e.Code == "idempotency_mismatch" { // shares its status with wrong bytes
			return exitConflict
		}
		return statusExit(e.Status)
	}
	if errors.Is(err, sdk.ErrNetwork) {
		return exitNetwork
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return exitLocal
	}
	return exitFailed
}

func outcomeExit(state string) int {
	switch state {
	case "interrupted":
		return exitRunInterrupted
	case "cancelled":
		return exitRunCancelled
	case "expired":
		return exitRunExpired
	}
	return exitFailed
}

func statusExit(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitAuth
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusUnprocessableEntity:
		return exitIntegrity
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitNetwork
	case http.StatusInsufficientStorage:
		return exitCapacity
	}
	return exitFailed
}

// explain says what happened, what is kept, and what to do. help is the command that says how the one that failed is used.
func (a *app) explain(err error, help string) {
	if err == nil {
		return
	}
	text, label := err.Error(), "error: "
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	switch {
	case errors.Is(err, errInterrupted):
		label = ""
	case a.errTTY && a.env("NO_COLOR") == "":
		label = "\x1b[31merror:\x1b[0m "
	}
	_, _ = fmt.Fprintln(a.err, label+text)
	if note := keptNote(err); note != "" {
		_, _ = fmt.Fprintln(a.err, "kept:", note)
	}
	if hint := hintFor(err, help); hint != "" {
		_, _ = fmt.Fprintln(a.err, "to do:", hint)
	}
}

func hintFor(err error, help string) string {
	if errors.Is(err, sdk.ErrQueueDeadline) {
		return "run again with a later --not-after, or without it; your place is kept for 15 minutes"
	}
	if errors.Is(err, sdk.ErrWaitLimit) {
		return "run again with a longer --wait-limit, or without it; your place is kept for 15 minutes"
	}
	if o, ok := errors.AsType[*outcomeError](err); ok {
		return fmt.Sprintf("see %q", o.look)
	}
	if _, ok := errors.AsType[*linkError](err); ok {
		return "ask whoever gave you the link for a new one"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "if the certificate is your own, name it in SSL_CERT_FILE: SSL_CERT_FILE=cert.pem roadctl ..."
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		switch {
		case e.Status == http.StatusNotFound:
			return missingHint(e.Message)
		case e.Status == http.StatusBadRequest && e.Code == "": // Go's answer to http on a port for https
			return "check the address: is it a Roadstead server, and must it begin with https://?"
		}
	}
	switch exitCode(err) {
	case exitUsage:
		return fmt.Sprintf("see %q", help)
	case exitAuth:
		if e, _ := errors.AsType[*sdk.Error](err); e.Status == http.StatusUnauthorized {
			return "sign in with \"roadctl login URL\", or check the key that \"roadctl config print\" names"
		}
		return "ask an admin of the repository, or the operator, for the right to do this"
	case exitNetwork:
		return "check that the server runs and that \"roadctl config print\" shows its address, then run the same command again"
	case exitIntegrity:
		return "run the same command again; if it fails again, tell the server's operator"
	case exitConflict:
		return "look at what is there now, then run the command again"
	case exitCapacity:
		return "delete what is no longer needed, or ask the operator for room"
	}
	return ""
}

// missingHint says where to look for what the server did not find.
func missingHint(message string) string {
	list := "roadctl ls"
	switch what, _, _ := strings.Cut(message, " "); what {
	case "link":
		list = "roadctl link ls REPO"
	case "account":
		list = "roadctl account ls"
	case "key":
		list = "roadctl key ls"
	case "tenant":
		list = "roadctl tenant ls"
	case "package":
		list = "roadctl packages ls"
	case "pool":
		list = "roadctl pools list"
	case "runner":
		list = "roadctl runners list"
	case "secret":
		list = "roadctl secrets ls"
	case "Run":
		list = "roadctl runs list"
	}
	return fmt.Sprintf("check the name with %q; what you may not see is not found either", list)
}
