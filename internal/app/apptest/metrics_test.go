package apptest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/roadstead/roadstead/internal/app/apptest"
)

func TestMetricsOfTheWholeServer(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("secret-repository")
	f := s.Put("secret-repository", "secret-path", []byte("x"))
	s.Do("GET", "/files/secret-repository/secret-path", nil)
	a := s.Do("GET", "/metrics", nil, "Authorization", "")
	for try := 0; !bytes.Contains(a.Body, []byte("roadstead_hold_drift")) || !bytes.Contains(a.Body, []byte("roadstead_pool_owned{pool=\"default\"} 1")); try++ {
		if try == 200 {
			t.Fatal("the pool is not loaded, or holds are not counted, after 10 s")
		}
		<-time.After(50 * time.Millisecond)
		a = s.Do("GET", "/metrics", nil, "Authorization", "")
	}
	problems, err := promlint.New(bytes.NewReader(a.Body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "roadstead_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, id := range []string{"secret-", f.Digest, f.CreatedBy, s.Key} {
		if bytes.Contains(a.Body, []byte(id)) {
			t.Errorf("the metrics tell %q", id)
		}
	}
	for _, name := range []string{"roadstead_pool_runs", "roadstead_pool_oldest_queued_seconds", "roadstead_pool_fairness_ratio", "go_sql_wait_duration_seconds_total", "roadstead_run_event_lag_seconds",
		"roadstead_build_info", "roadstead_download_tick_seconds", "roadstead_http_requests_total", "go_goroutines"} {
		if !bytes.Contains(a.Body, []byte(name)) {
			t.Errorf("no metric %s", name)
		}
	}
	ready := s.Do("GET", "/readyz?verbose", nil, "Authorization", "")
	if ready.Status != 200 || !bytes.Contains(ready.Body, []byte("lastTickSeconds")) || bytes.Contains(ready.Body, []byte("secret-")) {
		t.Errorf("readyz: %d %s", ready.Status, ready.Body)
	}
}
