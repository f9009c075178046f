package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/archive"
)

// folder is a package's folder with the manifest and a program.
func folder(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{api.ManifestFile: manifest, "bin/run.sh": "#!/bin/sh\n", "data/b.txt": "b", "data/a.txt": "a", ".git/config": "x"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "bin/run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

const manifest = `{"name":"report","version":"1.0.0","entry":["bin/run.sh"]}`

// The same folder packs to the same bytes wherever and whenever, and the server takes what comes out; links are refused
// before anything is sent.
func TestPack(t *testing.T) {
	var all [2]bytes.Buffer
	for i := range all {
		dir := folder(t, manifest)
		if i == 1 {
			old := time.Unix(1e9, 0)
			if err := os.Chtimes(filepath.Join(dir, "data/a.txt"), old, old); err != nil {
				t.Fatal(err)
			}
		}
		if err := pack(dir, &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(all[0].Bytes(), all[1].Bytes()) {
		t.Error("two packs of the same folder differ")
	}
	if err := archive.Check(bytes.NewReader(all[0].Bytes()), archive.Limits{Entries: 100, Bytes: 1 << 20}); err != nil {
		t.Error(err)
	}
	out := t.TempDir()
	if err := archive.Unpack(&all[1], out, archive.Limits{Entries: 100, Bytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(out, "bin/run.sh"))
	if err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("the program: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(out, ".git")); !os.IsNotExist(err) {
		t.Errorf("the folder .git was packed: %v", err)
	}
	dir := folder(t, manifest)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "data/link")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := (command{args: []string{"packages", "publish", dir}, serve: answer(nil)}).run(t); code != exitUsage || !strings.Contains(stderr, "no links") {
		t.Errorf("a link: %d %s", code, stderr)
	}
}

// A publish packs, uploads to the inbox and names what was uploaded; what the server would refuse of the manifest is
// refused before anything is sent.
func TestPublish(t *testing.T) {
	var seen []string
	var published api.PublishPackage
	serve := func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.Path)
		switch r.Method + " " + r.URL.Path {
		case "POST /api/v1/packages/inbox":
			answer(api.PackageInbox{Repository: "packages-acme"})(w, r)
		case "POST /api/v1/packages":
			if err := json.NewDecoder(r.Body).Decode(&published); err != nil {
				t.Error(err)
			}
			answer(api.PackageVersion{Package: "report", Version: published.Version, Digest: published.Digest})(w, r)
		default:
			if r.Method != http.MethodPut {
				refuse(404, api.Problem{Code: "not_found", Message: "file not found"})(w, r)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			answer(api.File{})(w, r)
		}
	}
	code, stdout, stderr := command{args: []string{"packages", "publish", folder(t, manifest), "--version", "1.1.0"}, serve: serve}.run(t)
	if code != 0 || stdout != "report@1.1.0 "+published.Digest+"\n" || published.Repository != "packages-acme" || published.Manifest != nil {
		t.Errorf("%d %q %s, sent %+v", code, stdout, stderr, published)
	}
	if got := seen[len(seen)-2]; got != "PUT /files/packages-acme/report/1.1.0.tar.gz" {
		t.Errorf("uploaded by %s", got)
	}
	image := folder(t, `{"name":"tool","version":"1.0.0","kind":"image","image":"data/a.txt"}`)
	if code, _, stderr = (command{args: []string{"packages", "publish", image, "--repository", "mine"}, serve: serve}).run(t); code != 0 || published.Manifest == nil || published.Repository != "mine" {
		t.Errorf("an image: %d %s, sent %+v", code, stderr, published)
	}
	seen = nil
	for text, want := range map[string]string{
		`{"name":"report","version":"1.0.0","entry":["x"],"colour":1}`:               "colour",
		`{"name":"report","version":"1.0.0","entry":["x"],"resources":{"slots":-1}}`: "resources.slots",
		`{"name":"report","entry":["x"]}`:                                            "version",
		`{"name":"tool","version":"1.0.0","kind":"image","image":"../x"}`:            "beside it",
	} {
		if code, _, stderr := (command{args: []string{"packages", "publish", folder(t, text)}, serve: serve}).run(t); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", text, code, stderr)
		}
	}
	if code, _, stderr := (command{args: []string{"packages", "publish", t.TempDir()}, serve: serve}).run(t); code != exitUsage || !strings.Contains(stderr, api.ManifestFile) {
		t.Errorf("no manifest: %d %s", code, stderr)
	}
	if len(seen) > 0 {
		t.Errorf("asked before the manifest was right: %v", seen)
	}
}

func TestPackagesOutput(t *testing.T) {
	p := api.Package{Name: "report", TenantName: "acme", Kind: "archive", Latest: "1.0.0", Revision: 3, CreatedAt: noon}
	v := api.PackageVersion{Package: "report", Version: "1.0.0", State: "yanked", Note: "wrong sum", Digest: "sha256:0123456789abcdef", Size: 1500, CreatedAt: noon}
	shared := p
	shared.Public = true
	for _, c := range []struct {
		args  string
		serve http.HandlerFunc
		code  int
		want  string
	}{
		{"packages ls", answer(api.Page[api.Package]{Items: []api.Package{p}}), 0, "report  1.0.0   archive  acme    no"},
		{"packages versions report", answer(api.Page[api.PackageVersion]{Items: []api.PackageVersion{v}}), 0, "1.0.0    yanked  1.5 kB  12:00 (0 s ago)  0123456789ab  wrong sum"},
		{"packages show report", answer(v), 0, `"version": "1.0.0"`},
		{"packages yank report@1.0.0 --note wrong", answer(v), 0, "report@1.0.0 is yanked"},
		{"packages deprecate report", answer(v), 2, "name the version"},
		{"packages share report", inTurn(answer(p), answer(shared)), 0, "report is every tenant's, as acme/report"},
		{"packages unshare report", answer(p), 0, "report is its tenant's only"},
		{"packages show Report", answer(v), 2, "PACKAGE"},
	} {
		code, stdout, stderr := command{args: strings.Fields(c.args), serve: c.serve}.run(t)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}
