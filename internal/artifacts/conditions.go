package artifacts

import (
	"slices"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
)

// conditions are the preconditions of a write (RFC 9110, section 13.1).
type conditions struct {
	match, noneMatch *tagList
}

// tagList is the value of If-Match or If-None-Match.
type tagList struct {
	any  bool     // the value *
	tags []string // opaque tags with quotes, in If-Match the strong ones only
}

const maxTags = 64

// parseConditions reads both header values; an empty one sets no condition.
func parseConditions(ifMatch, ifNoneMatch string) (c conditions, err error) {
	if c.match, err = parseTags("If-Match", ifMatch, true); err != nil {
		return c, err
	}
	c.noneMatch, err = parseTags("If-None-Match", ifNoneMatch, false)
	return c, err
}

// parseTags reads * or a list of entity tags. A weak tag never matches under strong comparison, so it is dropped.
func parseTags(field, value string, strong bool) (*tagList, error) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return nil, nil
	}
	if value == "*" {
		return &tagList{any: true}, nil
	}
	list := &tagList{}
	malformed := fault.Invalid(field, `must be * or up to %d entity tags like "abc" with commas between`, maxTags)
	for n := 0; ; n++ {
		rest, weak := strings.CutPrefix(value, "W/")
		if n >= maxTags || !strings.HasPrefix(rest, `"`) {
			return nil, malformed
		}
		end := strings.IndexByte(rest[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(rest[1:end-1], func(r rune) bool { return r <= 0x20 || r == 0x7f }) {
			return nil, malformed
		}
		if !weak || !strong {
			list.tags = append(list.tags, rest[:end])
		}
		value = strings.TrimLeft(rest[end:], " \t")
		if value == "" {
			return list, nil
		}
		if value[0] != ',' {
			return nil, malformed
		}
		value = strings.TrimLeft(value[1:], " \t")
	}
}

func (l *tagList) holds(current *File) bool {
	return current != nil && (l.any || slices.Contains(l.tags, current.ETag()))
}

// check applies the conditions to the path's current revision, nil for none.
func (c conditions) check(current *File) error {
	if c.match != nil && !c.match.holds(current) {
		return fault.New(fault.PreconditionFails, "the file is not, or no longer, the one If-Match names")
	}
	if c.noneMatch != nil && c.noneMatch.holds(current) {
		return fault.New(fault.PreconditionFails, "there already is a file that If-None-Match excludes")
	}
	return nil
}
