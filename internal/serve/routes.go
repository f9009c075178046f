package serve

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
	"github.com/roadstead/roadstead/internal/serve/files"
	"github.com/roadstead/roadstead/internal/serve/follow"
	"github.com/roadstead/roadstead/internal/serve/problem"
)

// Config is what the HTTP side needs besides its services.
type Config struct {
	Proxies Proxies // whose forwarding headers count
	Version string  // the server's version
}

// Services are what the routes call.
type Services struct {
	Auth    Authenticator
	Runners RunnerAuthenticator // nil: no Runs here
	API     jsonapi.Services
	Files   *files.Handlers
	Runs    *files.RunFiles // nil: no Runs here
	Follow  follow.Runs
	Uploads http.Handler // resumable uploads, tus 1.0; finds its caller in the request's context
	Health  Health
	Metrics *prometheus.Registry
	Log     *slog.Logger
}

// New makes the server's handler. Every route is in this function.
func New(cfg Config, s Services) (http.Handler, error) {
	e := newEdge(cfg.Proxies, s.Log)
	for _, c := range e.metrics.collectors() {
		if err := s.Metrics.Register(c); err != nil {
			return nil, err
		}
	}
	user := func(h handler) handler { return signedIn(s.Auth, h) }
	mux := http.NewServeMux()

	// Bytes.
	mux.Handle("GET "+api.PathFiles, e.handle(stream, user(s.Files.Get)))
	mux.Handle("PUT "+api.PathFiles, e.handle(stream, user(s.Files.Put)))
	mux.Handle("DELETE "+api.PathFiles, e.handle(stream, user(s.Files.Delete)))
	mux.Handle("GET "+api.PathLinks+"{token}", e.handle(stream, s.Files.Link))
	mux.Handle("GET /api/v1/repositories/{repository}/objects/{digest}", e.handle(stream, user(s.Files.Object)))
	mux.Handle(api.PathUploads, e.handle(stream, user(plain(s.Uploads))))

	// Bytes of Runs, and what happens to them, live.
	if s.Runs != nil {
		mux.Handle("GET /api/v1/runs/{run}/results/{name}", e.handle(stream, user(s.Runs.Result)))
		mux.Handle("GET /api/v1/runs/{run}/follow", e.handle(stream, user(follow.Handler(s.Follow, e.metrics.followed))))
		mux.Handle("GET /api/v1/runner/attempts/{attempt}/objects/{digest}", e.handle(stream, runner(s.Runners, s.Runs.JobObject)))
		mux.Handle("PUT /api/v1/runner/uploads", e.handle(stream, granted(s.Runs.Upload)))
	}

	// JSON: each operation registers itself under /api/v1.
	document, err := jsonapi.Register(func(pattern string, h http.HandlerFunc) {
		switch {
		case strings.Contains(pattern, jsonapi.RunnerPrefix):
			mux.Handle(pattern, e.handle(large, runner(s.Runners, plain(h))))
		case strings.HasSuffix(pattern, " "+jsonapi.PathRegister):
			mux.Handle(pattern, e.handle(small, plain(h))) // the token in the body is the credential
		default:
			mux.Handle(pattern, e.handle(small, user(plain(h))))
		}
	}, cfg.Version, s.API)
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /api/v1/openapi.json", e.handle(small, static("application/json", document)))

	// Operation: for probes and collectors, which have no key; they tell sums, never ids.
	mux.Handle("GET /livez", e.handle(small, static("text/plain; charset=utf-8", []byte("ok\n"))))
	mux.Handle("GET /readyz", e.handle(small, ready(s.Health)))
	mux.Handle("GET /metrics", e.handle(small, plain(promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))))

	mux.Handle("GET /{$}", e.handle(small, static("text/plain; charset=utf-8", []byte("Roadstead. The API is under /api/v1, files under /files/.\n"))))
	return e.wrap(e.route(mux)), nil
}

// route refuses what another site's page makes a browser send with the key it remembers for Basic, and answers what no
// route takes as a refusal like all others, instead of ServeMux's plain text and redirects.
func (e *edge) route(mux *http.ServeMux) http.Handler {
	var sameSite http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := sameSite.Check(r); err != nil {
			problem.Write(w, r, fault.Wrap(fault.Forbidden, err, "a page of another site may not do this"))
			return
		}
		if h, pattern := mux.Handler(r); pattern != "" && !slashRedirect(r, pattern) {
			if strings.Contains(pattern, "{") {
				mux.ServeHTTP(w, r) // finds the values in the path
				return
			}
			r.Pattern = pattern
			h.ServeHTTP(w, r)
			return
		}
		allowed := allowedMethods(mux, r)
		if len(allowed) == 0 {
			writeMissing(w, r)
			return
		}
		writeNotAllowed(w, r, allowed)
	})
}

// plain makes a handler of one that answers everything by itself.
func plain(h http.Handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

func static(contentType string, body []byte) handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		_, err := w.Write(body)
		return err
	}
}
