package apptest_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

// A resumable upload goes on over a restart of the server from the last byte that was acknowledged.
func TestResumableUpload(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	body := content(2 << 20)
	b64 := func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }
	made := s.Do("POST", api.PathUploads, nil, "Tus-Resumable", "1.0.0", "Upload-Length", strconv.Itoa(len(body)),
		"Upload-Metadata", "repository "+b64("demo")+",path "+b64("up.bin")+",sha256 "+b64(strings.TrimPrefix(digestOf(body), "sha256:")))
	if made.Status != http.StatusCreated || !strings.HasPrefix(made.Header.Get("Location"), s.URL+api.PathUploads) {
		t.Fatalf("start: %d %s %v", made.Status, made.Body, made.Header)
	}
	path := strings.TrimPrefix(made.Header.Get("Location"), s.URL)
	patch := func(from, to int) apptest.Answer {
		return s.Do("PATCH", path, bytes.NewReader(body[from:to]), "Tus-Resumable", "1.0.0",
			"Upload-Offset", strconv.Itoa(from), "Content-Type", "application/offset+octet-stream")
	}
	if a := patch(0, 1<<20); a.Status != http.StatusNoContent {
		t.Fatalf("first half: %d %s", a.Status, a.Body)
	}
	s.Restart()
	if a := s.Do("GET", "/files/demo/up.bin", nil); a.Status != 404 {
		t.Errorf("half an upload is a file: %d", a.Status)
	}
	head := s.Do("HEAD", path, nil, "Tus-Resumable", "1.0.0")
	if head.Header.Get("Upload-Offset") != strconv.Itoa(1<<20) {
		t.Fatalf("after the restart: %d %v", head.Status, head.Header)
	}
	_, stranger := s.ServiceAccount("stranger", "demo", "write")
	if a := s.Do("HEAD", path, nil, "Tus-Resumable", "1.0.0", "Authorization", "Bearer "+stranger); a.Status != 404 {
		t.Errorf("another's upload is visible: %d", a.Status)
	}
	if a := patch(1<<20, len(body)); a.Status != http.StatusNoContent {
		t.Fatalf("second half: %d %s", a.Status, a.Body)
	}
	if a := s.Do("GET", "/files/demo/up.bin", nil); a.Status != 200 || !bytes.Equal(a.Body, body) {
		t.Errorf("the file: %d, %d bytes", a.Status, len(a.Body))
	}
}
