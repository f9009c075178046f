package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func filter(label string, states ...string) sdk.RunFilter {
	return sdk.RunFilter{Labels: map[string]string{"scenario": label}, States: states}
}

// strangers tries to reach what is another tenant's: by the API, by a Run that names it, and by a Run that looks around
// on the machine while the owner's Run has its secret there. Nothing of it may come out.
func (w *world) strangers(ctx context.Context, name string) error {
	label := "owner-" + name
	owner := sh(`cat "$ROADSTEAD_SECRETS/canary"; cat "$ROADSTEAD_SECRETS/canary" > "$ROADSTEAD_OUTPUTS/treasure"; sleep 3`)
	owner.Secrets, owner.Outputs, owner.Env = []string{"canary"}, []api.Output{{Name: "treasure"}}, map[string]string{"KEEPSAKE": w.canary}
	id, err := w.submit(ctx, w.victim, label, owner)
	if err != nil {
		return err
	}
	if err := w.active(ctx, label, 1); err != nil {
		return err
	}
	probe := sh(`echo looking; env; grep -rsa ` + w.canary[:12] + ` /proc/[0-9]*/environ /proc/[0-9]*/cmdline /tmp /run /var/tmp /home ` + w.dir + ` | head -c 2000; ls -la ` + w.dir + ` 2>&1; echo looked`)
	if _, err := w.submit(ctx, w.spy, "spy-"+name, probe); err != nil {
		return err
	}
	looked, err := w.ended(ctx, w.spy, "spy-"+name, time.Minute)
	if err != nil {
		return err
	}
	text := ""
	for l, err := range w.spy.RunLogs(ctx, looked[0].ID, 0) {
		if err != nil {
			return err
		}
		text += l.Text + "\n"
	}
	whole, err := w.ended(ctx, w.victim, label, time.Minute)
	if err != nil {
		return err
	}
	w.report(name+".probe_looked", boolean(strings.Contains(text, "looked")), exactly, 1)
	// What the probe's own command line says of it is not found: only whole ones count.
	w.report(name+".found_by_run", boolean(strings.Contains(text, w.canary) || strings.Contains(text, "KEEPSAKE")), exactly, 0)
	w.report(name+".owner_succeeded", part(whole, succeeded), exactly, 1)
	open, err := w.reachable(ctx, id, whole[0])
	if err != nil {
		return err
	}
	w.report(name+".found_by_api", float64(open), exactly, 0)
	return w.masked(ctx, name, id)
}

// reachable counts the ways by the API that do not say not_found, or let a Run have what is not its tenant's.
func (w *world) reachable(ctx context.Context, id string, owner api.Run) (open int, err error) {
	paths := []string{"/api/v1/runs/" + id, "/api/v1/runs/" + id + "/events", "/api/v1/runs/" + id + "/logs", "/api/v1/runs/" + id + "/results/treasure",
		"/api/v1/runs/" + id + "/follow", "/api/v1/secrets/canary"}
	for _, path := range paths {
		status, err := w.ask(ctx, http.MethodGet, path, w.spy.key, nil, nil)
		if err != nil {
			return open, err
		}
		if status != http.StatusNotFound {
			w.say("the spy's GET %s is answered %d", path, status)
			open++
		}
	}
	named := sh("true")
	named.Inputs = map[string]api.Input{"loot": {Result: &api.ResultOf{Run: owner.ID, Output: "treasure"}}}
	secret := sh("true")
	secret.Secrets = []string{"canary"}
	for what, n := range map[string]api.NewRun{"a foreign result as input": named, "a foreign secret": secret} {
		status, err := w.ask(ctx, http.MethodPost, "/api/v1/runs", w.spy.key, n, nil)
		if err != nil {
			return open, err
		}
		if status < 400 || status >= 500 {
			w.say("a Run with %s is answered %d", what, status)
			open++
		}
	}
	return open, nil
}

// masked: the owner's own lines do not show the secret that it wrote.
func (w *world) masked(ctx context.Context, name, id string) error {
	lines, shown := 0, 0
	for l, err := range w.victim.RunLogs(ctx, id, 0) {
		if err != nil {
			return fmt.Errorf("reading the owner's lines: %w", err)
		}
		lines++
		if strings.Contains(l.Text, w.canary) {
			shown++
		}
	}
	w.report(name+".owner_lines", float64(lines), atLeast, 1)
	w.report(name+".secret_in_lines", float64(shown), exactly, 0)
	return nil
}
