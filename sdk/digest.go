package sdk

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
)

const digestPrefix = "sha256:"

// answerDigest finds the SHA-256 of the whole object in an answer, as sha256:<hex>, or "" when the answer has none:
// Repr-Digest (RFC 9530) if there, else an ETag that is a digest.
func answerDigest(h http.Header) string {
	for _, list := range h.Values("Repr-Digest") {
		for item := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
			if !strings.EqualFold(name, "sha-256") {
				continue
			}
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
			if err == nil && len(raw) == 32 {
				return digestPrefix + hex.EncodeToString(raw)
			}
		}
	}
	tag := strings.Trim(strongTag(h.Get("ETag")), `"`)
	if d, ok := ParseDigest(tag); ok {
		return d
	}
	return ""
}

// ParseDigest reads 64 hex digits, with or without "sha256:" before them, as sha256:<hex>.
func ParseDigest(s string) (string, bool) {
	digits := strings.ToLower(strings.TrimPrefix(s, digestPrefix))
	if raw, err := hex.DecodeString(digits); err != nil || len(raw) != 32 {
		return "", false
	}
	return digestPrefix + digits, true
}

// reprDigest renders sha256:<hex> as a Repr-Digest value.
func reprDigest(digest string) string {
	raw, _ := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(raw) + ":"
}

// strongTag is the ETag if it can pin a revision: weak ones may not be used with ranges (RFC 9110, 13.1.5).
func strongTag(tag string) string {
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return tag
}
