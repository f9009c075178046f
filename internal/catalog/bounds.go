package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/fault"
)

// The most that a manifest may ask for. What one installation has is for its pools to say; beyond these a number is a
// mistake.
const (
	maxSlots    = 10_000
	maxMilliCPU = 10_000_000 // 10,000 CPUs
	minMemory   = 1 << 20
	maxMemory   = 1 << 44 // 16 TiB
	maxDisk     = 1 << 46 // 64 TiB
	maxSeconds  = 30 * 24 * 3600
	maxGrace    = 600
	maxRetries  = 100
	maxBackoff  = 900
	maxEntry    = 256
	maxWord     = 4096
	maxItems    = 100
	maxText     = 2000
)

var itemName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckManifest fills what a manifest leaves to us (kind, class, slots) and refuses what makes no sense, naming the
// field. Its version may be empty: a publish can name it.
func CheckManifest(m *Manifest) error {
	if m.Kind == "" {
		m.Kind = string(Archive)
	}
	if m.Class == "" {
		m.Class = "background"
	}
	if err := CheckName("name", m.Name); err != nil {
		return err
	}
	if m.Version != "" {
		if err := CheckVersion("version", m.Version); err != nil {
			return err
		}
	}
	for _, check := range []func(*Manifest) error{checkWords, checkEntry, checkResources, checkPolicy, checkInputs, checkOutputs, checkSecrets} {
		if err := check(m); err != nil {
			return err
		}
	}
	return nil
}

func checkWords(m *Manifest) error {
	switch m.Class {
	case "interactive", "background", "periodic", "build":
	default:
		return fault.Invalid("class", "must be one of interactive, background, periodic, build")
	}
	switch Kind(m.Kind) {
	case Archive:
		if m.Image != "" {
			return fault.Invalid("image", "is for the kind image only")
		}
	case Image:
	default:
		return fault.Invalid("kind", "must be archive or image")
	}
	return checkText("description", m.Description, maxText)
}

func checkText(field, s string, most int) error {
	if len(s) > most || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fault.Invalid(field, "must be valid UTF-8 of at most %d bytes without NUL", most)
	}
	return nil
}

func checkEntry(m *Manifest) error {
	if len(m.Entry) == 0 {
		if m.Kind == string(Image) {
			return nil // its own entry point
		}
		return fault.Invalid("entry", "must have the program to start and its arguments")
	}
	if len(m.Entry) > maxEntry {
		return fault.Invalid("entry", "must have at most %d words", maxEntry)
	}
	for i, word := range m.Entry {
		field := fmt.Sprintf("entry[%d]", i)
		if err := checkText(field, word, maxWord); err != nil {
			return err
		}
		if i == 0 && strings.TrimSpace(word) == "" {
			return fault.Invalid(field, "must name the program to start")
		}
	}
	return nil
}

// within refuses a number beyond its bounds; 0 is absent.
func within(field string, n, least, most int64) error {
	if n != 0 && (n < least || n > most) {
		return fault.Invalid(field, "must be between %d and %d, is %d", least, most, n)
	}
	return nil
}

func checkResources(m *Manifest) error {
	r := &m.Resources
	if r.Slots == 0 {
		r.Slots = 1
	}
	return first(
		within("resources.slots", r.Slots, 1, maxSlots),
		within("resources.milliCpu", r.MilliCPU, 1, maxMilliCPU),
		within("resources.memoryBytes", r.MemoryBytes, minMemory, maxMemory),
		within("resources.diskBytes", r.DiskBytes, 1, maxDisk),
	)
}

func checkPolicy(m *Manifest) error {
	p := m.Policy
	if err := first(
		within("policy.timeoutSeconds", p.TimeoutSeconds, 1, maxSeconds),
		within("policy.maxTimeoutSeconds", p.MaxTimeoutSeconds, 1, maxSeconds),
		within("policy.graceSeconds", p.GraceSeconds, 1, maxGrace),
		within("policy.retry.failures", int64(p.Retry.Failures), 1, maxRetries),
		within("policy.retry.losses", int64(p.Retry.Losses), 1, maxRetries),
		within("policy.retry.backoffSeconds", p.Retry.BackoffSeconds, 1, maxBackoff),
	); err != nil {
		return err
	}
	if p.MaxTimeoutSeconds != 0 && p.MaxTimeoutSeconds < p.TimeoutSeconds {
		return fault.Invalid("policy.maxTimeoutSeconds", "must not be below timeoutSeconds")
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkInputs(m *Manifest) error {
	if len(m.Inputs) > maxItems {
		return fault.Invalid("inputs", "must be at most %d", maxItems)
	}
	seen := map[string]bool{}
	for i, in := range m.Inputs {
		field := fmt.Sprintf("inputs[%d].", i)
		if err := checkItem(field+"name", in.Name, seen); err != nil {
			return err
		}
		if err := checkText(field+"help", in.Help, maxText); err != nil {
			return err
		}
		if _, known := inputTypes()[in.Type]; !known {
			return fault.Invalid(field+"type", "must be one of string, int, number, bool, file, json")
		}
		if len(in.Default) == 0 {
			continue
		}
		if in.Required {
			return fault.Invalid(field+"default", "makes no sense for an input that is required")
		}
		if err := checkGiven(field+"default", in.Type, defaultOf(in)); err != nil {
			return err
		}
	}
	return nil
}

func checkOutputs(m *Manifest) error {
	if len(m.Outputs) > maxItems {
		return fault.Invalid("outputs", "must be at most %d", maxItems)
	}
	seen, paths := map[string]bool{}, map[string]bool{}
	for i := range m.Outputs {
		out, field := &m.Outputs[i], fmt.Sprintf("outputs[%d].", i)
		if err := checkItem(field+"name", out.Name, seen); err != nil {
			return err
		}
		if out.Path == "" {
			out.Path = out.Name
		}
		if err := artifacts.CheckPath(field+"path", out.Path); err != nil {
			return err
		}
		if paths[out.Path] {
			return fault.Invalid(field+"path", "is another output's")
		}
		paths[out.Path] = true
		if err := checkMediaType(field+"mediaType", out); err != nil {
			return err
		}
	}
	return nil
}

func checkSecrets(m *Manifest) error {
	if len(m.Secrets) > maxItems {
		return fault.Invalid("secrets", "must be at most %d", maxItems)
	}
	seen := map[string]bool{}
	for i, name := range m.Secrets {
		if err := checkItem(fmt.Sprintf("secrets[%d]", i), name, seen); err != nil {
			return err
		}
	}
	return nil
}

func checkMediaType(field string, out *api.Output) error {
	if out.MediaType == "" {
		return nil
	}
	kind, sub, found := strings.Cut(out.MediaType, "/")
	printable := func(r rune) bool { return r < 0x20 || r > 0x7e }
	if !found || kind == "" || sub == "" || len(out.MediaType) > artifacts.MaxMediaType || strings.ContainsFunc(out.MediaType, printable) {
		return fault.Invalid(field, "must be type/subtype of printable ASCII, at most %d bytes", artifacts.MaxMediaType)
	}
	return nil
}

// checkItem refuses the name of an input or output that is malformed or taken. Names become files, so two that some file
// system takes for one are one.
func checkItem(field, name string, seen map[string]bool) error {
	if !itemName.MatchString(name) {
		return fault.Invalid(field, "must be 1 to 100 of A-Z a-z 0-9 . _ -, beginning with a letter or digit")
	}
	if folded := strings.ToLower(name); seen[folded] {
		return fault.Invalid(field, "is there twice")
	} else {
		seen[folded] = true
	}
	return nil
}
