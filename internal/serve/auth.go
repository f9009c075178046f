package serve

import (
	"context"
	"net/http"
	"strings"

	"github.com/roadstead/roadstead/internal/attempts"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Authenticator turns an API key into the principal it belongs to. It answers fault.Unauthorized for a key that is
// unknown, expired or revoked, without telling them apart.
type Authenticator interface {
	Authenticate(ctx context.Context, secret string) (identity.Principal, error)
}

// signedIn lets only authenticated callers through to h.
func signedIn(auth Authenticator, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		secret, err := credential(r)
		if err != nil {
			return err
		}
		caller, err := auth.Authenticate(r.Context(), secret)
		if err != nil {
			return err
		}
		request.From(r.Context()).Caller = caller
		return h(w, r)
	}
}

// RunnerAuthenticator turns a runner's own key into who it is; fault.Unauthorized for one that is unknown or revoked.
type RunnerAuthenticator interface {
	AuthenticateRunner(ctx context.Context, key string) (attempts.Caller, error)
}

// runner lets only runners through to h.
func runner(auth RunnerAuthenticator, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		key, err := credential(r)
		if err != nil {
			return err
		}
		info := request.From(r.Context())
		if info.Runner, err = auth.AuthenticateRunner(r.Context(), key); err != nil {
			return err
		}
		return h(w, r)
	}
}

// granted hands the secret of a grant on to h, which checks it.
func granted(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		secret, err := credential(r)
		if err != nil {
			return err
		}
		request.From(r.Context()).Grant = secret
		return h(w, r)
	}
}

// credential reads the API key: a bearer token, or the Basic password for tools that know only that.
func credential(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", fault.New(fault.Unauthorized, "sign in with an API key: send it as a bearer token or as the Basic password")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	secret := strings.TrimSpace(token)
	if strings.EqualFold(scheme, "Basic") {
		_, secret, _ = r.BasicAuth()
	} else if !strings.EqualFold(scheme, "Bearer") {
		secret = ""
	}
	if len(values) > 1 || secret == "" || len(secret) > 512 {
		return "", fault.New(fault.Unauthorized, "the Authorization header must be one bearer token, or Basic with the API key as password")
	}
	return secret, nil
}
