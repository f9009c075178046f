package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
)

// A value comes from standard input or a file, never from the command line, and is printed nowhere.
func TestSecretsCommands(t *testing.T) {
	const value = "OPEN SESAME"
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got api.NewSecret
	made := api.Secret{Name: "db", Version: 2, Packages: []string{}, RotatedAt: noon}
	scoped := made
	scoped.Packages = []string{"report", "x/tool"}
	serve := func(w http.ResponseWriter, r *http.Request) {
		got = api.NewSecret{}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		answer(made)(w, r)
	}
	for _, c := range []struct{ args, stdin, sent string }{
		{"secrets create db --package report,x/tool", value + "\n", "T1BFTiBTRVNBTUU="},
		{"secrets create db --raw", value + "\n", "T1BFTiBTRVNBTUUK"},
		{"secrets rotate db", value + "\r\n", "T1BFTiBTRVNBTUU="},
		{"secrets rotate db --file " + file, "", "T1BFTiBTRVNBTUU="},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), stdin: c.stdin, serve: serve}.run(t)
		if code != 0 || stdout != "db: version 2\n" || got.Value != c.sent || !got.Base64 {
			t.Errorf("%s: %d %s%s, sent %+v", c.args, code, stdout, stderr, got)
		}
	}
	for _, c := range []struct {
		args  string
		serve http.HandlerFunc
		code  int
		want  string
	}{
		{"secrets create db", serve, 2, "no value given"},
		{"secrets create db OPEN", serve, 2, "the form is"},
		{"secrets create db --file " + file + ".gone", serve, 7, "read the value"},
		{"secrets ls", answer(api.Page[api.Secret]{Items: []api.Secret{made, scoped}}), 0, "db    2        report, x/tool  12:00"},
		{"secrets scope db report x/tool", answer(scoped), 0, "db: for report, x/tool"},
		{"secrets rm db", refuse(204, api.Problem{}), 0, "deleted db"},
		{"secrets rotate-key", answer(api.SecretsKeyRotated{Key: "k2", Resealed: 7, Unopened: 1}), 0, "key k2, 7 values sealed anew"},
		{"secrets rotate-key", answer(api.SecretsKeyRotated{Unopened: 1}), 0, "1 values could not be opened"},
		{"account set-role ann admin", inTurn(answer(api.Page[api.Account]{Items: []api.Account{{ID: "1", Name: "ann", Kind: "user"}}}), answer(api.Account{Name: "ann", Revision: 2})), 0, "ann: tenant role admin, policy revision 2"},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: %d\n%s%s", c.args, code, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "SESAME") {
			t.Errorf("%s tells the value", c.args)
		}
	}
}
