package apptest_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/app"
	"github.com/roadstead/roadstead/internal/app/apptest"
)

// content is reproducible noise.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestFilesByPath(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	body := content(3 << 20)
	made := s.Put("demo", "dir/a%20b.bin", body)
	if made.Path != "dir/a b.bin" || made.Digest != digestOf(body) || made.Size != int64(len(body)) || made.Revision != 1 {
		t.Errorf("put answered %+v", made)
	}
	const url = "/files/demo/dir/a%20b.bin"
	whole := s.Do("GET", url, nil)
	if whole.Status != 200 || !bytes.Equal(whole.Body, body) || whole.Header.Get("Repr-Digest") == "" || whole.Header.Get("ETag") == "" {
		t.Errorf("get: %d, %d bytes, %v", whole.Status, len(whole.Body), whole.Header)
	}
	etag := whole.Header.Get("ETag")
	cases := []struct {
		name, method string
		headers      []string
		status       int
		body         []byte
	}{
		{"range", "GET", []string{"Range", "bytes=100-199"}, 206, body[100:200]},
		{"resume", "GET", []string{"Range", "bytes=1048576-", "If-Range", etag}, 206, body[1048576:]},
		{"resume after a change", "GET", []string{"Range", "bytes=1048576-", "If-Range", `"other"`}, 200, body},
		{"tail", "GET", []string{"Range", "bytes=-10"}, 206, body[len(body)-10:]},
		{"unchanged", "GET", []string{"If-None-Match", etag}, 304, nil},
		{"condition fails", "GET", []string{"If-Match", `"other"`}, 412, nil},
		{"past the end", "GET", []string{"Range", "bytes=99999999-"}, 416, nil},
		{"head", "HEAD", nil, 200, []byte{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.Do(c.method, url, nil, c.headers...)
			if a.Status != c.status || c.body != nil && !bytes.Equal(a.Body, c.body) {
				t.Errorf("got %d with %d bytes, want %d with %d", a.Status, len(a.Body), c.status, len(c.body))
			}
		})
	}
	object := s.Do("GET", "/api/v1/repositories/demo/objects/"+made.Digest, nil)
	if object.Status != 200 || !bytes.Equal(object.Body, body) {
		t.Errorf("by digest: %d", object.Status)
	}
	if a := s.Do("DELETE", url, nil); a.Status != 204 {
		t.Errorf("delete: %d %s", a.Status, a.Body)
	}
	if a := s.Do("GET", url, nil); a.Status != 404 {
		t.Errorf("after delete: %d", a.Status)
	}
}

func TestWritesUnderConditions(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	first := s.Do("PUT", "/files/demo/f", strings.NewReader("one"), "If-None-Match", "*")
	if first.Status != 201 {
		t.Fatalf("first: %d %s", first.Status, first.Body)
	}
	etag := s.Do("HEAD", "/files/demo/f", nil).Header.Get("ETag")
	if put := first.Header.Get("ETag"); put != etag {
		t.Fatalf("a write answers with the tag %s, a read with %s", put, etag)
	}
	const wrong = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
	cases := []struct {
		name    string
		headers []string
		status  int
		code    string
	}{
		{"exists", []string{"If-None-Match", "*"}, 412, "precondition_failed"},
		{"another revision", []string{"If-Match", `"x"`}, 412, "precondition_failed"},
		{"digest differs", []string{"Repr-Digest", wrong}, 422, "integrity_mismatch"},
		{"digest malformed", []string{"Content-Digest", "sha-256=zz"}, 400, "invalid_input"},
		{"partial", []string{"Content-Range", "bytes 0-1/2"}, 400, "invalid_input"},
		{"encoded", []string{"Content-Encoding", "gzip"}, 400, "invalid_input"},
		{"media type", []string{"Content-Type", "nonsense"}, 400, "invalid_input"},
		{"the revision it was made from", []string{"If-Match", etag}, 200, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.Do("PUT", "/files/demo/f", strings.NewReader("two"), c.headers...)
			if a.Status != c.status || c.code != "" && s.Problem(a).Code != c.code {
				t.Errorf("got %d %s", a.Status, a.Body)
			}
		})
	}
	var page api.Page[api.File]
	s.JSON(s.Key, "GET", "/api/v1/repositories/demo/revisions?path=f", nil, &page)
	if len(page.Items) != 2 || page.Items[0].Revision != 2 {
		t.Errorf("refused writes left revisions: %+v", page.Items)
	}
}

func TestNotYoursIsNotFound(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	made := s.Put("demo", "f", []byte("x"))
	_, stranger := s.ServiceAccount("stranger", "", "")
	_, reader := s.ServiceAccount("reader", "demo", "read")
	for _, path := range []string{"/files/demo/f", "/files/none/f", "/api/v1/repositories/demo/objects/" + made.Digest, "/api/v1/repositories/demo/files"} {
		if a := s.Do("GET", path, nil, "Authorization", "Bearer "+stranger); a.Status != 404 {
			t.Errorf("stranger at %s: %d", path, a.Status)
		}
	}
	if a := s.Do("PUT", "/files/demo/g", strings.NewReader("x"), "Authorization", "Bearer "+stranger); a.Status != 404 {
		t.Errorf("stranger writes: %d", a.Status)
	}
	if a := s.Do("GET", "/files/demo/f", nil, "Authorization", "Bearer "+reader); a.Status != 200 || a.Header.Get(api.HeaderDownloadClass) != "release" {
		t.Errorf("reader: %d %v", a.Status, a.Header)
	}
	if a := s.Do("PUT", "/files/demo/g", strings.NewReader("x"), "Authorization", "Bearer "+reader); a.Status != 403 {
		t.Errorf("reader writes: %d", a.Status)
	}
}

func TestShareLink(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	s.Put("demo", "dir/ключ.txt", []byte("shared"))
	var link api.ShareLink
	s.JSON(s.Key, "POST", "/api/v1/repositories/demo/links", api.NewLink{Path: "dir/ключ.txt"}, &link)
	s.Put("demo", "dir/ключ.txt", []byte("rewritten"))
	path := strings.TrimPrefix(link.URL, s.URL)
	a := s.Do("GET", path, nil, "Authorization", "")
	if a.Status != 200 || string(a.Body) != "shared" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") || a.Header.Get(api.HeaderDownloadClass) != "release" {
		t.Errorf("got %d %q %v", a.Status, a.Body, a.Header)
	}
	if a := s.Do("GET", "/l/nonsense", nil); a.Status != 404 {
		t.Errorf("unknown token: %d", a.Status)
	}
	s.JSON(s.Key, "DELETE", "/api/v1/repositories/demo/links/"+link.ID, nil, nil)
	if a := s.Do("GET", path, nil); a.Status != 404 {
		t.Errorf("revoked: %d", a.Status)
	}
}

// Raw bytes on the socket, since Go's client would clean them up.
func TestHostileRequests(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	s.Put("demo", "f", []byte("x"))
	auth := "Authorization: Bearer " + s.Key + "\r\n"
	cases := []struct{ name, line, headers, status string }{
		{"dots", "GET /files/demo/../demo/f", auth, "400"},
		{"encoded dots", "GET /files/demo/%2e%2e/f", auth, "400"},
		{"encoded slash", "GET /files/demo/a%2ff", auth, "400"},
		{"double slash", "GET //files/demo/f", auth, "400"},
		{"inner double slash", "PUT /files/demo//f", auth + "Content-Length: 1\r\n", "400"},
		{"nul", "GET /files/demo/f%00", auth, "400"},
		{"backslash", "GET /files/demo/..%5cf", auth, "400"},
		{"double encoding stays literal", "GET /files/demo/%252e%252e", auth, "404"},
		{"bad escape", "GET /files/demo/%zz", auth, "400"},
		{"not utf-8", "GET /files/demo/%ff", auth, "400"},
		{"long path", "GET /files/demo/" + strings.Repeat("a/", 2000) + "a", auth, "400"},
		{"bad class", "GET /files/demo/f", auth + "Arkvory-Download-Class: vip\r\n", "400"},
		{"bad id", "GET /files/demo/f", auth + "Arkvory-Download-Id: a b\r\n", "400"},
		{"bad ticket is ignored", "GET /files/demo/f", auth + "Arkvory-Queue-Ticket: 2.x.y.z\r\n", "200"},
		{"absurd range", "GET /files/demo/f", auth + "Range: bytes=x-y\r\n", "416"},
		{"huge range numbers", "GET /files/demo/f", auth + "Range: bytes=99999999999999999999-\r\n", "416"},
		{"negative length", "PUT /files/demo/g", auth + "Content-Length: -1\r\n", "400"},
		{"two lengths", "PUT /files/demo/g", auth + "Content-Length: 1\r\nContent-Length: 2\r\n", "400"},
		{"connect", "CONNECT other:443", auth, "400"},
		{"trace", "TRACE /files/demo/f", auth, "405"},
		{"header too large", "GET /files/demo/f", "X: " + strings.Repeat("x", 80<<10) + "\r\n", "431"},
		{"control in basic", "GET /files/demo/f", "Authorization: Basic AAAA\r\n", "401"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := raw(t, s, c.line+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+c.headers+"\r\n"); got != c.status {
				t.Errorf("status %s, want %s", got, c.status)
			}
		})
	}
	if a := s.Do("GET", "/files/demo/g", nil); a.Status != 404 {
		t.Errorf("a refused request left a file: %d", a.Status)
	}
}

// raw sends bytes and returns the status of the answer.
func raw(t *testing.T, s *apptest.Server, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, request) }() // the server may close before it has read all
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	return strings.Fields(line)[1]
}

// An upload that breaks off leaves neither file nor half a file.
func TestBrokenUploadLeavesNothing(t *testing.T) {
	s := apptest.Start(t)
	s.Repository("demo")
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	request := "PUT /files/demo/cut HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.Key + "\r\nContent-Length: 1000000\r\n\r\nonly this"
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(answer), " 201 ") {
		t.Errorf("half a file was acknowledged: %s", answer)
	}
	_ = c.Close()
	if a := s.Do("GET", "/files/demo/cut", nil); a.Status != 404 {
		t.Errorf("after the cut: %d", a.Status)
	}
}

func TestFullDiskIsSaidBeforeTheBody(t *testing.T) {
	s := apptest.Start(t, func(c *app.Config) { c.DiskReserve = 1 << 20 })
	s.Repository("demo")
	r, err := http.NewRequest("PUT", s.URL+"/files/demo/huge", neverRead{t})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1 << 50
	r.Header.Set("Authorization", "Bearer "+s.Key)
	r.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("status %d", res.StatusCode)
	}
}

type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the client was asked for a body that has no room")
	return 0, io.EOF
}
