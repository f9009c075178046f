package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/fault"
)

const good = `{"name":"report","version":"1.0.0","entry":["python3","main.py"],
	"inputs":[{"name":"prices","type":"file","required":true},{"name":"window","type":"int","default":30},
		{"name":"rate","type":"number"},{"name":"log","type":"bool","default":false},{"name":"title","type":"string"},{"name":"extra","type":"json"}],
	"outputs":[{"name":"table.csv"},{"name":"chart","path":"out/chart.svg","mediaType":"image/svg+xml","optional":true}],
	"policy":{"timeoutSeconds":60,"maxTimeoutSeconds":600,"retry":{"failures":2},"network":true}}`

func TestParseManifest(t *testing.T) {
	m, err := catalog.ParseManifest([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if m.Kind != "archive" || m.Class != "background" || m.Resources.Slots != 1 || m.Outputs[0].Path != "table.csv" || m.Outputs[1].Path != "out/chart.svg" {
		t.Errorf("what is left to us: %+v", m)
	}
}

// Each refusal names its field: unknown ones by their whole path, and numbers that are negative or absurd (bad input).
func TestManifestRefusals(t *testing.T) {
	for _, c := range []struct{ with, field string }{
		{`"colour":1`, "colour"},
		{`"Entry":["a"]`, "Entry"},
		{`"policy":{"timeout":5}`, "policy.timeout"},
		{`"policy":{"retry":{"always":true}}`, "policy.retry.always"},
		{`"inputs":[{"name":"a","type":"int"},{"name":"b","type":"int","mandatory":true}]`, "inputs[1].mandatory"},
		{`"name":"Report"`, "name"},
		{`"name":"../x"`, "name"},
		{`"name":7`, "name"},
		{`"version":"1"`, "version"},
		{`"version":"1.0.0+linux"`, "version"},
		{`"version":"01.0.0"`, "version"},
		{`"kind":"wheel"`, "kind"},
		{`"image":"x.tar"`, "image"},
		{`"class":"urgent"`, "class"},
		{`"description":"a\u0000b"`, "description"},
		{`"entry":[]`, "entry"},
		{`"entry":"run.sh"`, "entry"},
		{`"entry":[" "]`, "entry[0]"},
		{`"entry":["a","b\u0000"]`, "entry[1]"},
		{`"resources":{"slots":-1}`, "resources.slots"},
		{`"resources":{"slots":1000000}`, "resources.slots"},
		{`"resources":{"milliCpu":-5}`, "resources.milliCpu"},
		{`"resources":{"milliCpu":1.5}`, "resources.milliCpu"},
		{`"resources":{"memoryBytes":1}`, "resources.memoryBytes"},
		{`"resources":{"memoryBytes":9000000000000000000}`, "resources.memoryBytes"},
		{`"resources":{"diskBytes":-1}`, "resources.diskBytes"},
		{`"policy":{"timeoutSeconds":-1}`, "policy.timeoutSeconds"},
		{`"policy":{"timeoutSeconds":99999999}`, "policy.timeoutSeconds"},
		{`"policy":{"timeoutSeconds":60,"maxTimeoutSeconds":30}`, "policy.maxTimeoutSeconds"},
		{`"policy":{"graceSeconds":601}`, "policy.graceSeconds"},
		{`"policy":{"retry":{"failures":101}}`, "policy.retry.failures"},
		{`"policy":{"retry":{"losses":-1}}`, "policy.retry.losses"},
		{`"policy":{"retry":{"backoffSeconds":901}}`, "policy.retry.backoffSeconds"},
		{`"inputs":[{"name":"..","type":"int"}]`, "inputs[0].name"},
		{`"inputs":[{"name":"a","type":"int"},{"name":"A","type":"int"}]`, "inputs[1].name"},
		{`"inputs":[{"name":"a","type":"date"}]`, "inputs[0].type"},
		{`"inputs":[{"name":"a","type":"int","default":"x"}]`, "inputs[0].default"},
		{`"inputs":[{"name":"a","type":"int","default":1,"required":true}]`, "inputs[0].default"},
		{`"inputs":[{"name":"a","type":"file","default":5}]`, "inputs[0].default"},
		{`"inputs":[{"name":"a","type":"file","default":"no-slash"}]`, "inputs[0].default"},
		{`"secrets":["../x"]`, "secrets[0]"},
		{`"secrets":["db","db"]`, "secrets[1]"},
		{`"outputs":[{"name":"a/b"}]`, "outputs[0].name"},
		{`"outputs":[{"name":"a","path":"../b"}]`, "outputs[0].path"},
		{`"outputs":[{"name":"a","path":"/b"}]`, "outputs[0].path"},
		{`"outputs":[{"name":"a","path":"x"},{"name":"b","path":"x"}]`, "outputs[1].path"},
		{`"outputs":[{"name":"a","mediaType":"text"}]`, "outputs[0].mediaType"},
	} {
		key, _, _ := strings.Cut(strings.TrimPrefix(c.with, `"`), `"`)
		fields := map[string]json.RawMessage{"name": json.RawMessage(`"x"`), "entry": json.RawMessage(`["run"]`)}
		delete(fields, key)
		base, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(string(base), "}") + "," + c.with + "}"
		_, err = catalog.ParseManifest([]byte(text))
		wantField(t, c.with, err, c.field)
	}
	for _, text := range []string{"", "null", "[]", `"x"`, "{", `{"name":"x","entry":["a"]} trailing`, strings.Repeat(" ", 300<<10)} {
		if _, err := catalog.ParseManifest([]byte(text)); !fault.Is(err, fault.InvalidInput) {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}

func wantField(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !fault.Is(err, fault.InvalidInput) {
		t.Errorf("%s: got %v", what, err)
		return
	}
	if d := fault.From(err).Details; len(d) != 1 || d[0].Field != field {
		t.Errorf("%s: got %v, want the field %s", what, err, field)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"name":"x","kind":"image","policy":null,"inputs":[null],"entry":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := catalog.ParseManifest(text)
		if err != nil {
			if !fault.Is(err, fault.InvalidInput) {
				t.Fatalf("no refusal: %v", err)
			}
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := catalog.ParseManifest(again); err != nil {
			t.Fatalf("what was accepted is refused once stored: %v\n%s", err, again)
		}
	})
}
