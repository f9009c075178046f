package delivery

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxRanges is how many ranges one request may ask. With more, or with ranges that add up to more than the object,
// the answer is the whole object, as RFC 9110 section 14.2 allows.
const MaxRanges = 16

// part is one satisfiable range, clipped to the object; to is exclusive.
type part struct {
	from, to int64
	tail     bool // reads the end of the file: a suffix, or a bounded range up to the last byte (D-2.7)
}

// asked is what a Range header means for an object of known size.
type asked int

const (
	askedWhole   asked = iota // no range, an unknown unit, or one to be ignored
	askedParts                // at least one satisfiable range
	askedNothing              // malformed, or beyond the end
)

// parseRange reads a Range header. net/http has its own parser behind ServeContent, which decides what is answered;
// this one tells it apart by D-2.7 and repairs what that one gets wrong: "-0", and any range of an empty object.
func parseRange(header string, size int64) ([]part, asked) {
	unit, set, ok := strings.Cut(header, "=")
	if header == "" || size == 0 || ok && !strings.EqualFold(unit, "bytes") {
		return nil, askedWhole
	}
	if !ok {
		return nil, askedNothing
	}
	var parts []part
	count := 0
	for spec := range strings.SplitSeq(set, ",") {
		if spec = trim(spec); spec == "" {
			continue
		}
		if count++; count > MaxRanges {
			return nil, askedWhole
		}
		p, ok := parsePart(spec, size)
		if !ok {
			return nil, askedNothing
		}
		if p.from < p.to {
			parts = append(parts, p)
		}
	}
	switch {
	case count == 0:
		return nil, askedWhole
	case len(parts) == 0:
		return nil, askedNothing
	}
	return parts, askedParts
}

// parsePart reads one range; an unsatisfiable one comes back empty.
func parsePart(spec string, size int64) (part, bool) {
	a, b, ok := strings.Cut(spec, "-")
	first, isFirst := parsePos(trim(a))
	last, isLast := parsePos(trim(b))
	switch {
	case !ok, trim(a) != "" && !isFirst, trim(b) != "" && !isLast, !isFirst && !isLast:
		return part{}, false
	case !isFirst:
		return part{from: size - min(last, size), to: size, tail: last < size}, true
	case first >= size:
		return part{}, true
	case isLast && last < first:
		return part{}, false
	case !isLast:
		return part{from: first, to: size}, true
	}
	to := min(last, size-1) + 1
	// From the first byte to the last it is the object, not its tail.
	return part{from: first, to: to, tail: to == size && first > 0}, true
}

// parsePos reads a position; one too big for any file is as good as the biggest.
func parsePos(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return math.MaxInt64 - 1, true
	}
	return min(v, math.MaxInt64-1), true
}

func trim(s string) string { return strings.Trim(s, " \t") }

// spell writes parts as a Range header.
func spell(parts []part) string {
	b := []byte("bytes=")
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, p.from, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, p.to-1, 10)
	}
	return string(b)
}

func contentRange(p part, size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", p.from, p.to-1, size)
}
