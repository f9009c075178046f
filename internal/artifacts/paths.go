package artifacts

import (
	"strings"
	"unicode/utf8"

	"github.com/roadstead/roadstead/internal/fault"
)

// Lengths in bytes.
const (
	MaxPath      = 1024
	MaxSegment   = 255
	MaxMediaType = 255
)

// CheckPath refuses a path of a file that is not of the allowed form: segments joined by single slashes, none of them
// empty, "." or "..", valid UTF-8 without control characters or backslashes. Percent-decoding is the caller's, once.
// Paths are names in the database only: a file on disk is named by its digest.
func CheckPath(field, path string) error {
	switch {
	case path == "":
		return fault.Invalid(field, "must not be empty")
	case len(path) > MaxPath:
		return fault.Invalid(field, "must be at most %d bytes", MaxPath)
	}
	if err := checkText(field, path); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "":
			return fault.Invalid(field, "must not begin or end with a slash, nor have two in a row")
		case segment == "." || segment == "..":
			return fault.Invalid(field, `must not have "." or ".." as a segment`)
		case len(segment) > MaxSegment:
			return fault.Invalid(field, "must not have a segment over %d bytes", MaxSegment)
		}
	}
	return nil
}

// checkText refuses what has no place in a path or in part of one.
func checkText(field, s string) error {
	if !utf8.ValidString(s) {
		return fault.Invalid(field, "must be valid UTF-8")
	}
	for _, r := range s {
		switch {
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return fault.Invalid(field, "must not have control characters")
		case r == '\\':
			return fault.Invalid(field, "must not have a backslash; use / between segments")
		case r == utf8.MaxRune || r == '\u2028' || r == '\u2029':
			// Line separators would break lists on terminals; the last code point is the upper bound of listings.
			return fault.Invalid(field, "must not have the characters U+2028, U+2029 or U+10FFFF")
		}
	}
	return nil
}

// checkPrefix refuses a prefix no path can have.
func checkPrefix(field, prefix string) error {
	if len(prefix) > MaxPath {
		return fault.Invalid(field, "must be at most %d bytes", MaxPath)
	}
	return checkText(field, prefix)
}

// checkMediaType fills the default and refuses what can't be a header's value.
func checkMediaType(s string) (string, error) {
	if s == "" {
		return "application/octet-stream", nil
	}
	kind, sub, found := strings.Cut(s, "/")
	if len(s) > MaxMediaType || !found || kind == "" || sub == "" {
		return "", fault.Invalid("mediaType", "must be type/subtype of at most %d bytes", MaxMediaType)
	}
	for _, c := range []byte(s) {
		if c < 0x20 || c > 0x7e {
			return "", fault.Invalid("mediaType", "must be printable ASCII")
		}
	}
	return s, nil
}

const digestPrefix = "sha256:"

// ParseDigest reads "sha256:" and 64 lower-case hex digits and returns the digits.
func ParseDigest(field, s string) (hexDigits string, err error) {
	rest, found := strings.CutPrefix(s, digestPrefix)
	if !found || len(rest) != 64 || strings.Trim(rest, "0123456789abcdef") != "" {
		return "", fault.Invalid(field, "must be sha256: followed by 64 lower-case hex digits")
	}
	return rest, nil
}
