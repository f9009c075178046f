package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

// Each command prints exactly its result on standard output and leaves by its documented code.
func TestOutputAndExitCodes(t *testing.T) {
	later, drain := noon.Add(30*24*time.Hour), noon.Add(112*time.Minute)
	queue := api.Queue{Strategy: "ordered", Seats: 4, SeatsInUse: 4, Reserve: 1, RateBytes: 40e6, AsOf: noon, DrainsAt: &drain, Classes: []api.QueueClass{
		{Class: "interactive", Weight: 8, Active: 1}, {Class: "bulk", Weight: 2, Waiting: 280, Active: 3, WaitingBytes: 1_700e9, HeadWaitSeconds: 2_820}},
		Estimates: &api.QueueEstimates{Starts: 412, Known: 0.981, Inside: 0.95, UnderP10: 0.096, UnderP90: 0.912}}
	file := api.File{Repository: "fleet", Path: "fw\x1b.img", Revision: 4, Digest: "sha256:0123456789abcdef0123", Size: 6e9, CreatedAt: noon.Add(-16 * time.Minute)}
	tests := []struct {
		args   string
		serve  http.HandlerFunc
		code   int
		stdout string
		stderr string
	}{
		{args: "whoami", serve: answer(api.Whoami{Name: "anna", Kind: "user", Tenant: "t1", Class: "interactive", Operator: true}),
			stdout: "anna at http://127.0.0.1:8080 (user of tenant t1, class interactive, operator)\n"},
		{args: "ls", serve: answer(api.Page[api.Repository]{Items: []api.Repository{{Name: "fleet", Tenant: "t1", Role: "admin", CreatedAt: noon.Add(-time.Hour)}}}),
			stdout: "NAME   TENANT  ROLE   MADE\nfleet  t1      admin  11:00 (1 h ago)\n"},
		{args: "ls fleet/f", serve: answer(api.Page[api.File]{Items: []api.File{file}}),
			stdout: "PATH     REV  SIZE    CHANGED             DIGEST\nfw?.img  4    6.0 GB  11:44 (16 min ago)  0123456789ab\n"},
		{args: "ls fleet -o json", serve: answer(api.Page[api.File]{}), stdout: "[]\n"},
		{args: "queue", serve: answer(queue), stdout: "as of 12:00:00, ordered: 4 of 4 seats in use (1 kept for interactive), 40.0 MB/s\n" +
			"CLASS        WEIGHT  WAITING  ACTIVE  PAUSED  HELD  BYTES WAITING  FIRST WAITS\n" +
			"interactive  8       0        1       0       0     0 B            -\n" +
			"bulk         2       280      3       0       0     1.7 TB         47 min\n" +
			"the queue is empty about 13:52 (in 1 h 52 min), if nothing else comes\n" +
			"of the last 412 starts 98 % were told before: 95 % of these inside their interval, 10 % before p10, 91 % before p90\n"},
		{args: "link create fleet/fw.img --expires 30d", serve: answer(api.ShareLink{ID: "l1", Revision: 4, URL: "http://s/l/tok", ExpiresAt: &later}),
			stdout: "http://s/l/tok\n", stderr: "link l1 to revision 4, ends: Wed 30 Dec 12:00 (in 30 d); the address is not shown again\n"},
		{args: "link ls fleet", serve: answer(api.Page[api.ShareLink]{Items: []api.ShareLink{{ID: "l1", Path: "fw.img", Revision: 4, CreatedAt: noon}}}),
			stdout: "ID  PATH    REV  MADE             ENDS  REVOKED\nl1  fw.img  4    12:00 (0 s ago)  -     -\n"},
		{args: "link revoke fleet l1", serve: answer(nil), stderr: "revoked l1\n"},
		{args: "repo create fleet", serve: answer(api.Repository{Name: "fleet"}), stdout: "fleet\n"},
		{args: "repo rm fleet", serve: answer(nil), stderr: "deleted fleet\n"},
		{args: "repo grant fleet 01a22e72-65c7-7c87-b1bb-32f35c89fe78 read", serve: answer(api.Grant{}), stderr: "01a22e72-65c7-7c87-b1bb-32f35c89fe78 has the role read on fleet\n"},
		{args: "repo grant fleet agent read", serve: inTurn(answer(api.Page[api.Account]{}), answer(api.Page[api.Account]{Items: []api.Account{{ID: "s1", Name: "agent"}}}), at("/api/v1/repositories/fleet/grants/s1")),
			stderr: "agent has the role read on fleet\n"},
		{args: "repo grant fleet nobody read", serve: answer(api.Page[api.Account]{}), code: 1, stderr: "error: there is no account \"nobody\" in your tenant; see \"roadctl account ls\"\n"},
		{args: "repo grants fleet", serve: answer(api.Page[api.Grant]{Items: []api.Grant{{Account: "acc", Role: "read"}}}), stdout: "ACCOUNT  ROLE\nacc      read\n"},
		{args: "repo revoke fleet anna -q", serve: inTurn(answer(api.Page[api.Account]{Items: []api.Account{{ID: "u1", Name: "anna"}}}), at("/api/v1/repositories/fleet/grants/u1"))},
		{args: "key create laptop", serve: answer(api.Key{ID: "k1", Account: "a1", Secret: "rsk_secret"}), stdout: "rsk_secret\n",
			stderr: "key k1 of account a1, ends: never; the key is not shown again\n"},
		{args: "key ls --account agent", serve: inTurn(answer(api.Page[api.Account]{Items: []api.Account{{ID: "s1", Name: "agent"}}}), answer(api.Page[api.Key]{})),
			stdout: "ID  NAME  MADE  LAST USED  ENDS  REVOKED\n"},
		{args: "key ls", serve: answer(api.Page[api.Key]{Items: []api.Key{{ID: "k1", Name: "laptop", CreatedAt: noon}}}),
			stdout: "ID  NAME    MADE             LAST USED  ENDS  REVOKED\nk1  laptop  12:00 (0 s ago)  -          -     -\n"},
		{args: "key revoke k1", serve: answer(nil), stderr: "revoked k1\n"},
		{args: "account create-service agent --class bulk", serve: answer(api.Account{ID: "s1", Kind: "service", Name: "agent", Class: "bulk"}), stdout: "s1\n",
			stderr: "made service agent, class bulk; give it a key: roadctl key create --account s1 NAME\n"},
		{args: "account ls", serve: inTurn(answer(api.Page[api.Account]{Items: []api.Account{{ID: "u1", Name: "anna", Kind: "user", Class: "interactive", Operator: true, Revision: 1}}}),
			answer(api.Page[api.Account]{Items: []api.Account{{ID: "s1", Name: "agent", Kind: "service", Class: "bulk", Disabled: true, Revision: 3}}})),
			stdout: "ID  NAME   KIND     CLASS        POLICY  STATE\nu1  anna   user     interactive  1       operator\ns1  agent  service  bulk         3       disabled\n"},
		{args: "account set-class agent background", serve: inTurn(answer(api.Page[api.Account]{Items: []api.Account{{ID: "s1", Name: "agent", Revision: 3}}}),
			answer(api.Account{Name: "agent", Class: "background", Revision: 4})), stdout: "agent: class background, policy revision 4\n"},
		{args: "account set-class nobody bulk", serve: answer(api.Page[api.Account]{}), code: 1, stderr: "error: there is no service account \"nobody\"; see \"roadctl account ls\"\n"},
		{args: "tenant create t2", serve: answer(api.Tenant{ID: "t2id"}), stdout: "t2id\n"},
		{args: "tenant ls", serve: answer(api.Page[api.Tenant]{Items: []api.Tenant{{ID: "x", Name: "t2", CreatedAt: noon}}}), stdout: "ID  NAME  MADE\nx   t2    12:00 (0 s ago)\n"},
		{args: "rm fleet/a fleet/b", serve: answer(nil), stderr: "deleted fleet/a\ndeleted fleet/b\n"},

		{args: "", code: 0, stdout: "*Usage:*"},
		{args: "bogus", code: 2, stderr: "*unknown command*"},
		{args: "repo bogus", code: 2, stderr: "*unknown command*"},
		{args: "ls a b", code: 2, stderr: "error: the form is: roadctl ls [REPO[/PREFIX]] [flags]\nto do: see \"roadctl ls --help\"\n"},
		{args: "link revoke fleet", code: 2, stderr: "*the form is: roadctl link revoke REPO ID*"},
		{args: "completion nosh", code: 2, stderr: "*unknown command \"nosh\" for \"roadctl completion\"*"},
		{args: "login ftp://x", code: 2, stderr: "*must look like https://host*"},
		{args: "download fleet/a -f -", code: 2, stderr: "*--file must name a file*"},
		{args: "download http://s/l/gone", serve: refuse(404, api.Problem{}), code: 1, stderr: "error: the link was revoked, has expired, or never was\nto do: ask whoever gave you the link for a new one\n"},
		{args: "key revoke k9", serve: refuse(404, api.Problem{Code: "not_found", Message: "key not found"}), code: 1, stderr: "*roadctl key ls*"},
		{args: "ls", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }, code: 2, stderr: "*must it begin with https://*"},
		{args: "ls --bogus", code: 2, stderr: "*unknown flag*"},
		{args: "whoami -o yaml", code: 2, stderr: "*--output must be table or json*"},
		{args: "whoami --url store", code: 2, stderr: "*must look like https://host*"},
		{args: "rm fleet", code: 2, stderr: "*must look like REPO/PATH*"},
		{args: "key create x --expires soon", code: 2, stderr: "*30d*"},
		{args: "whoami", serve: refuse(401, api.Problem{Code: "unauthorized", Message: "sign in first", RequestID: "q7"}), code: 3,
			stderr: "error: sign in first (request q7)\nto do: sign in with \"roadctl login URL\", or check the key that \"roadctl config print\" names\n"},
		{args: "queue", serve: refuse(403, api.Problem{Code: "forbidden", Message: "no"}), code: 3, stderr: "*ask an admin*"},
		{args: "ls nothing", serve: refuse(404, api.Problem{Code: "not_found", Message: "repository not found"}), code: 1, stderr: "*roadctl ls*"},
		{args: "repo create fleet", serve: refuse(409, api.Problem{Code: "already_exists", Message: "taken"}), code: 6, stderr: "*look at what is there*"},
		{args: "repo create X", serve: refuse(400, api.Problem{Code: "invalid_input", Message: "name: must be lower case"}), code: 2, stderr: "*lower case\nto do: see \"roadctl repo create --help\"*"},
		{args: "repo create x", serve: refuse(507, api.Problem{Code: "capacity_exceeded", Message: "no room"}), code: 8, stderr: "*ask the operator for room*"},
		{args: "whoami --key-file /nonexistent/key", code: 7, stderr: "*read the API key*"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, stdout, stderr := command{args: strings.Fields(tt.args), serve: tt.serve}.run(t)
			if code != tt.code || !matches(stdout, tt.stdout) || !matches(stderr, tt.stderr) {
				t.Errorf("code %d, want %d\nstdout:\n%s\nwant:\n%s\nstderr:\n%s\nwant:\n%s", code, tt.code, stdout, tt.stdout, stderr, tt.stderr)
			}
		})
	}
}

// at answers with nothing to one path, and refuses others.
func at(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		answer(nil)(w, r)
	}
}

// matches compares exactly, or by a part when want is *part*.
func matches(got, want string) bool {
	if part, ok := strings.CutPrefix(want, "*"); ok {
		return strings.Contains(got, strings.TrimSuffix(part, "*"))
	}
	return got == want
}

func TestLoginAndConfig(t *testing.T) {
	home := t.TempDir()
	env := func(more ...string) map[string]string {
		m := map[string]string{"HOME": home}
		for i := 0; i+1 < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	var shown string
	serve := func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		answer(api.Whoami{Name: "anna"})(w, r)
	}
	file := filepath.Join(home, ".config", "roadstead", "roadctl.json")

	code, _, stderr := command{args: []string{"login", "https://store.example/"}, stdin: "rsk_one\n", env: env(), serve: serve}.run(t)
	if code != 0 || shown != "Bearer rsk_one" || stderr != "remembered in "+file+"\n" {
		t.Fatalf("code %d, shown %q\n%s", code, shown, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	check := func(name, want string, args []string, env map[string]string) {
		t.Helper()
		shown = "none"
		if code, _, stderr := (command{args: args, env: env, serve: serve}).run(t); code != 0 || shown != want {
			t.Errorf("%s: code %d, shown %q, want %q\n%s", name, code, shown, want, stderr)
		}
	}
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, []byte("rsk_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("file", "Bearer rsk_one", []string{"whoami"}, env())
	check("environment over file", "Bearer rsk_env", []string{"whoami"}, env("ROADSTEAD_API_KEY", "rsk_env"))
	check("key file over key", "Bearer rsk_file", []string{"whoami"}, env("ROADSTEAD_API_KEY", "rsk_env", "ROADSTEAD_API_KEY_FILE", keyFile))
	check("flag over all", "Bearer rsk_file", []string{"whoami", "--key-file", keyFile}, env("ROADSTEAD_API_KEY", "rsk_env"))
	check("a key is its server's", "", []string{"whoami", "--url", "https://other.example"}, env())

	_, stdout, _ := command{args: []string{"config", "print", "-o", "json"}, env: env("ROADSTEAD_URL", "http://from.env")}.run(t)
	var rows []struct{ Name, Value, Source string }
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || rows[0].Value != "http://from.env" || rows[0].Source != "environment ROADSTEAD_URL" || rows[1].Source != "default" {
		t.Errorf("%v\n%s", err, stdout)
	}
	_, stdout, _ = command{args: []string{"config", "print"}, env: env()}.run(t)
	if strings.Contains(stdout, "rsk_one") || !strings.Contains(stdout, "(set, not shown)") {
		t.Errorf("the key is printed or not known:\n%s", stdout)
	}

	code, _, _ = command{args: []string{"login", "https://store.example"}, stdin: "rsk_bad", env: env(), serve: refuse(401, api.Problem{Code: "unauthorized"})}.run(t)
	if code != 3 {
		t.Errorf("a wrong key: code %d", code)
	}
	check("a wrong key changes nothing", "Bearer rsk_one", []string{"whoami"}, env())
	if code, _, _ := (command{args: []string{"login", "https://x"}, stdin: "\n", env: env()}).run(t); code != 2 {
		t.Errorf("no key: code %d", code)
	}
	if _, _, stderr := (command{args: []string{"login", "http://far.example"}, stdin: "k", env: env(), serve: serve}).run(t); !strings.Contains(stderr, "warning: over http") {
		t.Errorf("no warning:\n%s", stderr)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := (command{args: []string{"whoami"}, env: env(), serve: serve}).run(t); !strings.Contains(stderr, "chmod 600") {
		t.Errorf("no warning:\n%s", stderr)
	}
}

func TestManAndCompletion(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := (command{args: []string{"man", dir}}).run(t); code != 0 {
		t.Fatal(stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "roadctl-download.1"))
	if err != nil || !strings.Contains(string(page), "wait-limit") {
		t.Error(err)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, _ := (command{args: []string{"completion", shell}}).run(t); code != 0 || !strings.Contains(stdout, "roadctl") {
			t.Errorf("%s: code %d", shell, code)
		}
	}
	for _, arg := range []string{"version", "--version"} {
		if code, stdout, _ := (command{args: []string{arg}}).run(t); code != 0 || !strings.HasPrefix(stdout, "roadctl ") {
			t.Errorf("%s: %d %q", arg, code, stdout)
		}
	}
}
