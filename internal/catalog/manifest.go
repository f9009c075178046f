package catalog

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
)

// Manifest says how a package runs.
type Manifest = api.PackageManifest

// maxManifest bounds a manifest's text; all fields at their longest are rarely a tenth of it.
const maxManifest = 256 << 10

// Manifest is what the version was published with.
func (v Version) Manifest() (m Manifest, err error) {
	if err := json.Unmarshal([]byte(v.Text), &m); err != nil {
		return m, fmt.Errorf("reading the stored manifest of %s: %w", v.Ref(), err)
	}
	return m, nil
}

// ParseManifest reads and checks a manifest. Its fault names the field that is unknown, of the wrong type or beyond its
// bounds.
func ParseManifest(text []byte) (m Manifest, err error) {
	if len(text) > maxManifest {
		return m, fault.Invalid(api.ManifestFile, "must be at most %d bytes", maxManifest)
	}
	if err := knownFields(text, reflect.TypeFor[Manifest](), ""); err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, malformed(err)
	}
	return m, CheckManifest(&m)
}

func malformed(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := wrong.Field
		if field == "" {
			field = api.ManifestFile
		}
		return fault.Invalid(field, "must not be a %s", wrong.Value)
	}
	return fault.Invalid(api.ManifestFile, "must be a JSON object: %v", err)
}

// knownFields refuses fields that the type does not have, by their whole path. A field it does not know would be a
// wish that is silently not met.
func knownFields(raw json.RawMessage, t reflect.Type, at string) error {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return nil
	case t.Kind() == reflect.Struct:
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil // of another type: the decoder says so, with its field
		}
		fields := map[string]reflect.Type{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = t.Field(i).Type
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			known, ok := fields[name]
			if !ok {
				return fault.Invalid(at+clip(name), "is no field of a manifest; there are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			}
			if err := knownFields(object[name], known, at+name+"."); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Slice:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil
		}
		for i, item := range items {
			if err := knownFields(item, t.Elem(), fmt.Sprintf("%s[%d].", strings.TrimSuffix(at, "."), i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clip keeps a foreign name short where it is repeated.
func clip(s string) string { return s[:min(len(s), 100)] }

// readManifest finds the manifest in an archive that was checked.
func readManifest(r io.Reader) ([]byte, error) {
	buffered := bufio.NewReader(r)
	var stream io.Reader = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("reading the archive: %w", err)
		}
		stream = unzipped
	}
	for t := tar.NewReader(stream); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, fault.Invalid(api.ManifestFile, "must be at the top of the archive")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the archive: %w", err)
		}
		if path.Clean(h.Name) != api.ManifestFile || h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(t, maxManifest+1))
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		return bytes.TrimPrefix(text, []byte("\ufeff")), nil
	}
}
