package api_test

import (
	"bytes"
	"flag"
	"os"
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
