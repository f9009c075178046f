package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"

	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
)

var update = flag.Bool("update", false, "write api/openapi.json anew")

const golden = "../../../api/openapi.json"

// The committed document is the contract that clients are generated from: it changes on purpose only.
func TestDocumentIsTheCommittedOne(t *testing.T) {
	got, err := jsonapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the operations no longer match api/openapi.json; if that is meant, run go test ./internal/serve/api -update and review the difference")
	}
	again, err := jsonapi.Document()
	if err != nil || !bytes.Equal(append(again, '\n'), got) {
		t.Errorf("the document differs from one run to the next: %v", err)
	}
}

// A parameter that the path names and no input reads would be empty in every request.
func TestEveryPathParameterIsRead(t *testing.T) {
	raw, err := jsonapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			read := map[string]bool{}
			for _, p := range op.Parameters {
				if p.In == "path" {
					read[p.Name] = true
				}
			}
			for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
				if !read[m[1]] {
					t.Errorf("%s %s: nothing reads {%s}", method, path, m[1])
				}
			}
		}
	}
	if len(doc.Paths) < 15 {
		t.Errorf("only %d paths in the document", len(doc.Paths))
	}
}
