package catalog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
)

// Semantic versions (semver.org 2.0.0) without build metadata: two versions that differ only in it would be equal.
var semantic = regexp.MustCompile(`^(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})(?:-((?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*))*))?$`)

const maxVersion = 100

// CheckVersion refuses what is no semantic version.
func CheckVersion(field, s string) error {
	if len(s) > maxVersion || !semantic.MatchString(s) {
		return fault.Invalid(field, "must be a semantic version such as 1.4.0 or 2.0.0-rc.1, at most %d bytes and without +", maxVersion)
	}
	return nil
}

// precedence turns a semantic version into text whose byte order is the order of versions, so that a database sorts and
// pages them. A number is preceded by its length. Of a prerelease the identifiers follow: numbers before words, each
// ended by a byte below all that words are made of, so that the shorter of two lists comes first. A release ends in a
// byte above all those.
func precedence(version string) (key string, prerelease bool) {
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return "", false
	}
	var b strings.Builder
	for _, number := range m[1:4] {
		writeNumber(&b, number)
	}
	if m[4] == "" {
		b.WriteByte('~')
		return b.String(), false
	}
	for id := range strings.SplitSeq(m[4], ".") {
		if _, err := strconv.ParseUint(id, 10, 64); err == nil {
			b.WriteByte('0')
			writeNumber(&b, id)
		} else {
			b.WriteByte('1')
			b.WriteString(id)
		}
		b.WriteByte('!')
	}
	return b.String(), true
}

func writeNumber(b *strings.Builder, digits string) {
	b.WriteByte('a' + byte(len(digits)))
	b.WriteString(digits)
}
