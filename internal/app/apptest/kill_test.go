package apptest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/api"
)

// process is the real server, built from its command.
type process struct {
	t    *testing.T
	exe  string
	data string
	cmd  *exec.Cmd
	url  string
	key  string
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, exe: filepath.Join(t.TempDir(), "roadstead"), data: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.exe, "github.com/roadstead/roadstead/cmd/roadstead")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	p.start()
	t.Cleanup(p.kill)
	return p
}

// start runs the server with one seat, over a link on which a download takes a while, and waits until it serves.
func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.exe, "serve", "--data", p.data, "--listen", "127.0.0.1:0", "--max-downloads", "1",
		"--download-session-min-bytes", "1", "--download-hold-seconds", "0", "--bandwidth", "262144", "--disk-reserve", "0")
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			p.url = line.URL
			break
		}
		p.t.Logf("server: %s", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // until the process ends
	key, err := os.ReadFile(filepath.Join(p.data, "operator.key"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.key = strings.TrimSpace(string(key))
}

// kill is kill -9: nothing is drained, flushed or told.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // says that it was killed
}

// client asks from an address of its own, as a machine of its own would.
func client(t *testing.T, n int) *http.Client {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}}
	tr := &http.Transport{DialContext: from.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (p *process) do(c *http.Client, method, path string, body io.Reader, headers ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequest(method, p.url+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	p.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// place asks for the big file without a download id and gives the place in the queue, 0 while it is not known.
func (p *process) place(c *http.Client) int {
	p.t.Helper()
	res := p.do(c, "GET", "/files/demo/big", nil)
	if res.StatusCode != 503 {
		p.t.Fatalf("got %d, want to wait", res.StatusCode)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	n, _ := strconv.Atoi(res.Header.Get(api.HeaderQueuePosition))
	return n
}

// eventually tries until it works out, for ten seconds.
func eventually(t *testing.T, what string, try func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !try(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

// After kill -9 twenty stock tools, which carry neither id nor ticket, have their old places, and the download that had
// the seat gets it back first, although all come back in the opposite order (D-2.12).
func TestKilledServerKeepsPlaces(t *testing.T) {
	p := newProcess(t)
	own := client(t, 100)
	if res := p.do(own, "POST", "/api/v1/repositories", strings.NewReader(`{"name":"demo"}`), "Content-Type", "application/json"); res.StatusCode != 201 {
		t.Fatal(res.Status)
	}
	if res := p.do(own, "PUT", "/files/demo/big", bytes.NewReader(content(fourMegabytes))); res.StatusCode != 201 {
		t.Fatal(res.Status)
	}
	begun := p.do(own, "GET", "/files/demo/big", nil, api.HeaderDownloadID, "first")
	if _, err := io.ReadFull(begun.Body, make([]byte, 1)); err != nil || begun.StatusCode != 200 {
		t.Fatalf("the first download: %s, %v", begun.Status, err)
	}
	const n = 20
	var clients [n]*http.Client
	for i := range clients {
		clients[i] = client(t, i)
		p.place(clients[i])
	}
	for i, c := range clients {
		eventually(t, "place "+strconv.Itoa(i+1), func() bool { return p.place(c) == i+1 })
	}
	eventually(t, "an up to date journal", func() bool {
		res := p.do(own, "GET", "/readyz?verbose", nil)
		text, err := io.ReadAll(res.Body)
		return err == nil && bytes.Contains(text, []byte(`"0 places not written down`))
	})

	p.kill()
	_ = begun.Body.Close()
	p.start()
	for i := range clients {
		p.place(clients[n-1-i])
	}
	eventually(t, "the seat for who had it", func() bool {
		res := p.do(own, "GET", "/files/demo/big", nil, api.HeaderDownloadID, "first")
		return res.StatusCode == 200
	})
	for i, c := range clients {
		eventually(t, "the old place "+strconv.Itoa(i+1), func() bool {
			got := p.place(c)
			if got != 0 && got != i+1 {
				t.Fatalf("client %d is at place %d now", i+1, got)
			}
			return got == i+1
		})
	}
}
