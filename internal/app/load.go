package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/roadstead/roadstead/internal/fault"
)

// Inputs are where settings come from, strongest first: Flags, Getenv, File.
type Inputs struct {
	Flags  map[string]string           // by flag name; only those given
	Lookup func(string) (string, bool) // environment
	File   string                      // JSON or TOML by its ending; empty for none
}

// Sourced is a setting with its value and where that came from.
type Sourced struct {
	Setting
	Value  string
	Source string // "flag --x", "environment X", "file F" or "default"
}

// Load reads the configuration. An unknown key, variable or a value out of range is an error that names it.
func Load(in Inputs) (Config, []Sourced, error) {
	c := Default()
	fromFile, err := readFile(in.File)
	if err != nil {
		return c, nil, err
	}
	all := Settings()
	if err := unknownKeys(in.File, fromFile, all); err != nil {
		return c, nil, err
	}
	sources := make([]Sourced, 0, len(all))
	for _, s := range all {
		name, value, source := s.find(in, fromFile)
		if source != "default" {
			if err := s.set(&c, name, value); err != nil {
				return c, nil, err
			}
		}
		sources = append(sources, Sourced{Setting: s, Value: s.get(&c), Source: source})
	}
	return c, sources, asGiven(c.Validate(), sources)
}

// asGiven names the setting at fault as it was given: who gave a flag looks for a flag.
func asGiven(err error, sources []Sourced) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(f.Details) == 0 {
		return err
	}
	for _, s := range sources {
		if flag, ok := strings.CutPrefix(s.Source, "flag "); ok && s.Env() == f.Details[0].Field {
			return fault.Invalid(flag, "%s", f.Details[0].Problem)
		}
	}
	return err
}

func (s Setting) find(in Inputs, fromFile map[string]string) (name, value, source string) {
	if v, ok := in.Flags[s.Flag()]; ok {
		return "--" + s.Flag(), v, "flag --" + s.Flag()
	}
	if v, ok := in.Lookup(s.Env()); ok {
		return s.Env(), v, "environment " + s.Env()
	}
	if v, ok := fromFile[s.Key]; ok {
		return s.Key + " in " + in.File, v, "file " + in.File
	}
	return "", "", "default"
}

// readFile reads a flat file of settings.
func readFile(name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.Invalid("--config", "must name a readable file: %v", err)
	}
	raw := map[string]any{}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(&raw)
	case ".toml":
		err = toml.Unmarshal(data, &raw)
	default:
		return nil, fault.Invalid("--config", "must end in .json or .toml")
	}
	if err != nil {
		return nil, fault.Invalid("--config", "%s: %v", name, err)
	}
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		if out[k], err = scalar(v); err != nil {
			return nil, fault.Invalid(k+" in "+name, "%v", err)
		}
	}
	return out, nil
}

// scalar is the text of a value; a list is written with commas, as in the environment.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64, json.Number:
		return fmt.Sprint(v), nil
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			part, err := scalar(item)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("must be a text, a whole number or a list of those")
}

func unknownKeys(file string, fromFile map[string]string, all []Setting) error {
	var unknown []string
	for k := range fromFile {
		if !slices.ContainsFunc(all, func(s Setting) bool { return s.Key == k }) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fault.Invalid("--config", "%s holds unknown settings: %s", file, strings.Join(unknown, ", "))
}
