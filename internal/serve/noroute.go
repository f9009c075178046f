package serve

import (
	"net/http"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/serve/problem"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// slashRedirect reports whether ServeMux would only add a slash to the path.
func slashRedirect(r *http.Request, pattern string) bool {
	path := pattern[strings.Index(pattern, "/"):]
	return strings.HasSuffix(path, "/") && path == r.URL.Path+"/"
}

// allowedMethods lists the methods some route takes at this path.
func allowedMethods(mux *http.ServeMux, r *http.Request) []string {
	var out []string
	for _, m := range []string{"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"} {
		probe := &http.Request{Method: m, Host: r.Host, URL: r.URL}
		if _, pattern := mux.Handler(probe); pattern != "" && !slashRedirect(r, pattern) {
			out = append(out, m)
		}
	}
	return out
}

func writeMissing(w http.ResponseWriter, r *http.Request) {
	problem.Write(w, r, fault.Missing("route"))
}

func writeNotAllowed(w http.ResponseWriter, r *http.Request, allowed []string) {
	err := fault.Invalid("method", "must be one of %s", strings.Join(allowed, ", "))
	request.From(r.Context()).Cause = err
	p := problem.Of(err)
	p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	problem.Send(w, r, p)
}
