package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/catalog"
)

func value(text string) api.Input { return api.Input{Value: json.RawMessage(text)} }

// Inputs are checked by their types, defaults are filled in, and a refusal names inputs.NAME (bad input).
func TestValidateInputs(t *testing.T) {
	m, err := catalog.ParseManifest([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	prices := api.Input{File: "data/prices.csv"}
	got, err := catalog.ValidateInputs(m, map[string]api.Input{"prices": prices, "rate": value("0.5")})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got["prices"].File != prices.File || string(got["window"].Value) != "30" || string(got["log"].Value) != "false" {
		t.Errorf("got %+v", got)
	}
	for _, c := range []struct {
		name string
		in   api.Input
		ok   bool
	}{
		{"window", value("7"), true}, {"window", value("-7"), true}, {"window", value("7.0"), false}, {"window", value("1e3"), false},
		{"window", value(`"7"`), false}, {"window", value("null"), false}, {"window", value("99999999999999999999"), false}, {"window", value("7 8"), false},
		{"rate", value("7"), true}, {"rate", value("1e3"), true}, {"rate", value("1e999"), false}, {"rate", value("true"), false}, {"rate", value("null"), false},
		{"log", value("true"), true}, {"log", value("1"), false}, {"log", value("null"), false},
		{"title", value(`"a"`), true}, {"title", value(`"a\u0000"`), false}, {"title", value("a"), false}, {"title", value("null"), false},
		{"title", value(`"` + strings.Repeat("a", 300<<10) + `"`), false},
		{"extra", value(`{"a":[1]}`), true}, {"extra", value("null"), true}, {"extra", value("{"), false}, {"extra", api.Input{File: "data/x"}, false},
		{"prices", api.Input{Result: &api.ResultOf{Run: "run_1", Output: "table"}}, true}, {"prices", api.Input{Result: &api.ResultOf{Run: "run_1"}}, false},
		{"prices", api.Input{File: "prices.csv"}, false}, {"prices", api.Input{File: "data/../x"}, false}, {"prices", value(`"data/prices.csv"`), false},
		{"prices", api.Input{}, false}, {"prices", api.Input{File: "data/x", Value: json.RawMessage("1")}, false},
		{"colour", value("1"), false},
	} {
		given := map[string]api.Input{"prices": prices}
		given[c.name] = c.in
		_, err := catalog.ValidateInputs(m, given)
		switch {
		case c.ok && err != nil:
			t.Errorf("%s=%.40s: %v", c.name, c.in.Value, err)
		case !c.ok:
			wantField(t, c.name+"="+string(c.in.Value[:min(40, len(c.in.Value))]), err, "inputs."+c.name)
		}
	}
	_, err = catalog.ValidateInputs(m, nil)
	wantField(t, "none given", err, "inputs.prices")
	got, err = catalog.ValidateInputs(catalog.Manifest{}, nil)
	if err != nil || got == nil {
		t.Errorf("a package without inputs: %v, %v", got, err)
	}
}
