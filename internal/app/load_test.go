package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestNamesKeepTheDocuments(t *testing.T) {
	want := strings.Fields(`ROADSTEAD_DATA ROADSTEAD_LISTEN ROADSTEAD_TLS_CERT_FILE ROADSTEAD_TLS_KEY_FILE ROADSTEAD_TRUSTED_PROXIES
		ROADSTEAD_DISK_RESERVE ROADSTEAD_DRAIN_SECONDS ROADSTEAD_LOG_LEVEL ROADSTEAD_MAX_DOWNLOADS ROADSTEAD_MAX_DOWNLOAD_SESSIONS
		ROADSTEAD_MAX_DOWNLOADS_PER_PRINCIPAL ROADSTEAD_DOWNLOAD_SESSION_MIN_BYTES ROADSTEAD_DOWNLOAD_HOLD_SECONDS
		ROADSTEAD_TRANSFER_QUEUE_LIMIT ROADSTEAD_DOWNLOAD_QUEUE_LIMIT ROADSTEAD_DOWNLOAD_CLASS_WEIGHTS ROADSTEAD_DOWNLOAD_RESERVE
		ROADSTEAD_DOWNLOAD_IDLE_SECONDS ROADSTEAD_DOWNLOAD_RANGES_PER_SESSION ROADSTEAD_DOWNLOAD_STRATEGY
		ROADSTEAD_DOWNLOAD_AGING_MINUTES ROADSTEAD_DOWNLOAD_PREEMPT ROADSTEAD_DOWNLOAD_JOURNAL ROADSTEAD_DOWNLOAD_MIN_RATE ROADSTEAD_DOWNLOAD_POLL_BUDGET
		ROADSTEAD_RUNNER_DIR ROADSTEAD_RUNNER_SLOTS ROADSTEAD_RUNNER_LEASE_SECONDS ROADSTEAD_RUNNER_HEARTBEAT_SECONDS ROADSTEAD_BANDWIDTH
		ROADSTEAD_BANDWIDTH_PER_PRINCIPAL`)
	var got []string
	for _, s := range Settings() {
		got = append(got, s.Env())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestStrongerSourceWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.toml")
	text := "maxDownloads = 5\ndownloadIdleSeconds = 9\nbandwidth = \"40MB\"\ndownloadClassWeights = [9, 3, 2, 1]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, sources, err := Load(Inputs{
		Flags:  map[string]string{"max-downloads": "7"},
		Lookup: lookup(map[string]string{"ROADSTEAD_MAX_DOWNLOADS": "6", "ROADSTEAD_DOWNLOAD_IDLE_SECONDS": "11"}),
		File:   file,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxDownloads != 7 || c.Idle != 11*time.Second || c.Bandwidth != 40e6 || c.ClassWeights != [4]uint32{9, 3, 2, 1} {
		t.Errorf("got %+v", c)
	}
	want := map[string]string{
		"maxDownloads": "flag --max-downloads", "downloadIdleSeconds": "environment ROADSTEAD_DOWNLOAD_IDLE_SECONDS",
		"bandwidth": "file " + file, "listen": "default",
	}
	for _, s := range sources {
		if w, ok := want[s.Key]; ok && s.Source != w {
			t.Errorf("%s came from %q, want %q", s.Key, s.Source, w)
		}
	}
}

func TestOutOfRangeNamesVariableAndRange(t *testing.T) {
	cases := []struct{ name, value, says string }{
		{"ROADSTEAD_MAX_DOWNLOADS", "0", "between 1 and 65536"},
		{"ROADSTEAD_MAX_DOWNLOADS", "many", "between 1 and 65536"},
		{"ROADSTEAD_DOWNLOAD_QUEUE_LIMIT", "1048577", "between 1 and 1048576"},
		{"ROADSTEAD_DOWNLOAD_RANGES_PER_SESSION", "65", "between 1 and 64"},
		{"ROADSTEAD_DOWNLOAD_CLASS_WEIGHTS", "8,4,2", "four whole numbers"},
		{"ROADSTEAD_DOWNLOAD_CLASS_WEIGHTS", "8,4,2,0", "between 1 and 100"},
		{"ROADSTEAD_BANDWIDTH", "-1", "between 0 and"},
		{"ROADSTEAD_BANDWIDTH", "9999999999TB", "between 0 and"},
		{"ROADSTEAD_TRUSTED_PROXIES", "proxy.example", "CIDR"},
		{"ROADSTEAD_LOG_LEVEL", "loud", "debug, info, warn or error"},
		{"ROADSTEAD_DOWNLOAD_RESERVE", "16", "lower than the 16 seats"},
		{"ROADSTEAD_MAX_DOWNLOADS_PER_PRINCIPAL", "17", "not exceed the 16 seats"},
		{"ROADSTEAD_TLS_CERT_FILE", "/nowhere.pem", "ROADSTEAD_TLS_KEY_FILE"},
		{"ROADSTEAD_LISTEN", "8080", "HOST:PORT"},
	}
	for _, c := range cases {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			_, _, err := Load(Inputs{Lookup: lookup(map[string]string{c.name: c.value})})
			if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatDoesNotFitIsNamedAsGiven(t *testing.T) {
	_, _, err := Load(Inputs{Flags: map[string]string{"download-reserve": "40"}, Lookup: lookup(nil)})
	if f := fault.From(err); f.Message != "--download-reserve: must be lower than the 16 seats (ROADSTEAD_MAX_DOWNLOAD_SESSIONS), is 40" {
		t.Errorf("got %v", err)
	}
}

func TestUnknownKeyIsAnError(t *testing.T) {
	for ending, text := range map[string]string{".json": `{"maxDownload": 4}`, ".toml": "maxDownload = 4\n", ".yaml": "a: 1\n"} {
		file := filepath.Join(t.TempDir(), "r"+ending)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(Inputs{Lookup: lookup(nil), File: file}); err == nil {
			t.Errorf("%s with an unknown key was accepted", ending)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("40MB")
	f.Add("1GiB")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseSize(s); ok && n < 0 {
			t.Errorf("%q became %d", s, n)
		}
	})
}
