package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

// maxInputs bounds the values of all inputs of a Run together; what is larger is a file.
const maxInputs = 256 << 10

// ValidateInputs is what a Run of the package gets for its inputs: those given, checked against the manifest, and the
// defaults of the others. The fault names the field inputs.NAME (R-2, bad input). Whether a file is there, and whether
// the caller may read it, is not looked at here.
func ValidateInputs(m Manifest, given map[string]api.Input) (map[string]api.Input, error) {
	declared := map[string]api.PackageInput{}
	for _, in := range m.Inputs {
		declared[in.Name] = in
	}
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		in, ok := declared[name]
		if !ok {
			names := strings.Join(slices.Sorted(maps.Keys(declared)), ", ")
			if names == "" {
				return nil, fault.Invalid("inputs."+clip(name), "the package has no inputs")
			}
			return nil, fault.Invalid("inputs."+clip(name), "is no input of the package; it has %s", names)
		}
		if err := checkGiven("inputs."+name, in.Type, given[name]); err != nil {
			return nil, err
		}
		if bytes += len(given[name].Value); bytes > maxInputs {
			return nil, fault.Invalid("inputs."+name, "brings the inputs over %d bytes; give a file instead", maxInputs)
		}
	}
	all := maps.Clone(given)
	if all == nil {
		all = map[string]api.Input{}
	}
	for _, in := range m.Inputs {
		if _, ok := given[in.Name]; ok {
			continue
		}
		switch {
		case in.Required:
			return nil, fault.Invalid("inputs."+in.Name, "is required")
		case len(in.Default) > 0:
			all[in.Name] = defaultOf(in)
		}
	}
	return all, nil
}

// defaultOf is the default as if it were given. A file's is its path; one that is no string stays a value, for the
// check to refuse.
func defaultOf(in api.PackageInput) api.Input {
	var file string
	if in.Type == "file" && json.Unmarshal(in.Default, &file) == nil {
		return api.Input{File: file}
	}
	return api.Input{Value: in.Default}
}

// checkGiven refuses an input that does not come from exactly one place, or is not of the type.
func checkGiven(field, kind string, in api.Input) error {
	sources := 0
	for _, given := range []bool{len(in.Value) > 0, in.File != "", in.Result != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		return fault.Invalid(field, "must have exactly one of value, file and result")
	case kind == "file" && len(in.Value) > 0:
		return fault.Invalid(field, "is a file: name it in file, or a result of another Run in result")
	case kind != "file" && len(in.Value) == 0:
		return fault.Invalid(field, "is a value of type %s, no file", kind)
	case in.File != "":
		return checkFile(field, in.File)
	case in.Result != nil:
		if in.Result.Run == "" || in.Result.Output == "" {
			return fault.Invalid(field, "must name the run and its output")
		}
		return nil
	}
	if !json.Valid(in.Value) {
		return fault.Invalid(field, "must be JSON")
	}
	if !inputTypes()[kind](in.Value) {
		return fault.Invalid(field, "must be of type %s", kind)
	}
	return nil
}

func checkFile(field, file string) error {
	repository, path, found := strings.Cut(file, "/")
	if !found {
		return fault.Invalid(field, "must be repository/path")
	}
	if err := artifacts.CheckRepositoryName(field, repository); err != nil {
		return err
	}
	return artifacts.CheckPath(field, path)
}

// inputTypes are the types of inputs with the test of a value, which is JSON. Files are no values.
func inputTypes() map[string]func(json.RawMessage) bool {
	return map[string]func(json.RawMessage) bool{
		"string": func(v json.RawMessage) bool {
			var s *string
			return json.Unmarshal(v, &s) == nil && s != nil && !strings.ContainsRune(*s, 0)
		},
		"int": func(v json.RawMessage) bool {
			_, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			return err == nil
		},
		"number": func(v json.RawMessage) bool {
			var f *float64
			return json.Unmarshal(v, &f) == nil && f != nil && !math.IsInf(*f, 0)
		},
		"bool": func(v json.RawMessage) bool {
			var b *bool
			return json.Unmarshal(v, &b) == nil && b != nil
		},
		"json": func(json.RawMessage) bool { return true },
		"file": func(json.RawMessage) bool { return false },
	}
}
