package files

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
)

// wantedDigest reads the digest a client says the body has, from Repr-Digest or Content-Digest (RFC 9530), as
// sha256:<hex>; empty when it says none. Of a body stored as it is both mean the same. Other algorithms are passed over.
func wantedDigest(h http.Header) (string, error) {
	found := ""
	for _, name := range []string{"Repr-Digest", "Content-Digest"} {
		for _, value := range h.Values(name) {
			for member := range strings.SplitSeq(value, ",") {
				algorithm, text, ok := strings.Cut(strings.TrimSpace(member), "=")
				if !ok {
					return "", malformedDigest(name)
				}
				if algorithm != "sha-256" {
					continue
				}
				digest, err := parseBytes(name, text)
				if err != nil {
					return "", err
				}
				if found != "" && found != digest {
					return "", fault.Invalid(name, "must not contradict another digest of the request")
				}
				found = digest
			}
		}
	}
	return found, nil
}

// parseBytes reads a structured field's byte sequence, :base64:.
func parseBytes(name, text string) (string, error) {
	inner, ok := strings.CutPrefix(text, ":")
	if ok {
		inner, ok = strings.CutSuffix(inner, ":")
	}
	raw, err := base64.StdEncoding.DecodeString(inner)
	if !ok || err != nil || len(raw) != 32 {
		return "", malformedDigest(name)
	}
	return "sha256:" + hex.EncodeToString(raw), nil
}

func malformedDigest(name string) error {
	return fault.Invalid(name, "must be like sha-256=:<base64 of 32 bytes>:")
}
