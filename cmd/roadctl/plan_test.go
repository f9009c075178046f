package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The plan from given numbers needs no server; its forecast is labelled one.
func TestPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "classes.json")
	text := `{"targetLoad":0.5,"node":{"milliCpu":4000},"classes":[
		{"name":"small","perMinute":60,"seconds":5,"need":{"milliCpu":400}},{"name":"large","perMinute":6,"seconds":50,"need":{"milliCpu":2000}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"--per-minute 120 --duration 180s --load 0.7", 0, []string{"runs   360.0  515    -         -\n", "515 slots for a load of 0.7: 360.0 are busy on average\n",
			"forecast of the wait on 515 slots (load 0.70): p50 0 s, p95 0 s", "neither is proof: measure"}},
		{"--per-minute 120 --duration 3m --slots 350 --seed 4", 0, []string{"more comes than 350 slots can do (load 1.03)"}},
		{"--per-minute 120 --duration 3m --cpu 0.5 --memory 2GiB --node-cpu 16 --node-memory 32GiB --no-forecast", 0, []string{"515    16        memory\n", "; 33 nodes, bound by memory\n"}},
		{"--per-minute 120 --duration 3m --api-calls 6 --api-quota 1080 --no-forecast", 0, []string{"bound by api_quota", "note: the API's quota of 1080 calls"}},
		{"--input " + file + " --no-forecast", 0, []string{"small  5.0   10     10        cpu\n", "large  5.0   10     2         cpu\n", "20 slots", "6 nodes"}},
		{"--input " + file + " --load 0.9", 2, []string{"leave one out"}},
		{"--per-minute 120", 2, []string{"give --per-minute and --duration"}},
		{"--per-minute 120 --duration 3m --load 1", 2, []string{"targetLoad"}},
		{"--per-minute 120 --duration 3m --memory lots", 2, []string{"2GiB"}},
		{"--per-minute 120 --duration 3m --cpu 8 --node-cpu 4", 2, []string{"more cpu than a node has"}},
		{"--per-minute 1e6 --duration 1h", 2, []string{"--no-forecast leaves it out"}},
	} {
		code, stdout, stderr := command{args: append([]string{"plan"}, strings.Fields(c.args)...)}.run(t)
		if code != c.code {
			t.Errorf("%s: code %d: %s", c.args, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s: no %q in\n%s%s", c.args, want, stdout, stderr)
			}
		}
	}
	code, stdout, _ := command{args: strings.Fields("plan --per-minute 120 --duration 3m -o json")}.run(t)
	var got planned
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || got.Slots != 515 || got.Forecast == nil || got.Forecast.Runs == 0 {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
}
