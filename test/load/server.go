package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// server is one child process and what it takes to start it again.
type server struct {
	argv   []string
	env    []string
	data   string
	log    string
	url    string
	http   *http.Client
	cmd    *exec.Cmd
	exited chan struct{}
}

// plan makes a server of the scenario on an address; before, if any, is put in front of its command line.
func (b *bench) plan(s scenario, listen string, extra []string, before ...string) *server {
	data := filepath.Join(b.dir, s.name)
	env := []string{}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROADSTEAD_") {
			env = append(env, v)
		}
	}
	return &server{
		argv: append(before, b.program(), "serve", "--data", data, "--listen", listen),
		env:  append(append(append(env, "ROADSTEAD_RUNNER_SLOTS=0"), s.settings()...), extra...),
		data: data, log: data + ".log", url: "http://" + listen, http: newHTTP(),
	}
}

// newHTTP is a client with connections of its own and without a proxy: the gate talks to this machine only.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: 10 * time.Minute,
	}}
}

// start starts the process and returns when it answers.
func (s *server) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.argv[0], s.argv[1:]...)
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.env, log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	exited, cmd := make(chan struct{}), s.cmd
	s.exited = exited
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	for limit := time.After(30 * time.Second); ; {
		if s.ready(ctx) {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("the server did not start: %s", s.lastWords())
		case <-limit:
			return fmt.Errorf("the server did not answer within 30 s: %s", s.lastWords())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *server) lastWords() string {
	text, _ := os.ReadFile(s.log)
	return strings.TrimSpace(string(text[max(0, len(text)-1000):]))
}

// kill ends the process without a warning.
func (s *server) kill() {
	if s.exited != nil {
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// stop ends the process as an operator would, and kills it when that takes too long.
func (s *server) stop() {
	if s.exited == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(15 * time.Second):
		s.kill()
	}
	s.http.CloseIdleConnections()
}

// operator is a client with the key that the first start left.
func (s *server) operator() (*sdk.Client, error) {
	key, err := os.ReadFile(filepath.Join(s.data, "operator.key"))
	if err != nil {
		return nil, err
	}
	return sdk.New(sdk.Config{URL: s.url, Key: strings.TrimSpace(string(key)), HTTP: s.http})
}

// world is what a fleet needs to know of the server.
type world struct {
	file     string // address of the file
	digest   string
	keys     []string // of the owners
	operator *sdk.Client
}

// furnish stores the file and makes the owners, through the API as anybody would.
func (s *server) furnish(ctx context.Context, b *bench, sc scenario) (*world, error) {
	op, err := s.operator()
	if err != nil {
		return nil, err
	}
	if _, err := op.CreateRepository(ctx, "load"); err != nil {
		return nil, err
	}
	w := &world{operator: op}
	file, err := s.put(ctx, b, op, "file.bin", sc.size)
	if err != nil {
		return nil, err
	}
	w.file, w.digest = file.url, file.digest
	for i := range sc.owners {
		key, err := owner(ctx, op, fmt.Sprintf("owner-%d", i), sc.class(i))
		if err != nil {
			return nil, err
		}
		w.keys = append(w.keys, key)
	}
	return w, nil
}

// stored is a file on the server.
type stored struct {
	url, digest string
	size        int64
}

// put makes a file and stores it.
func (s *server) put(ctx context.Context, b *bench, op *sdk.Client, name string, size int64) (stored, error) {
	local := filepath.Join(b.fast, name)
	digest, err := makeFile(local, size)
	if err != nil {
		return stored{}, err
	}
	defer os.Remove(local)
	file, err := op.Upload(ctx, sdk.Upload{File: local, Repository: "load", Path: name})
	if err != nil || file.Digest != digest {
		return stored{}, fmt.Errorf("the upload came to %s, not %s: %w", file.Digest, digest, err)
	}
	return stored{op.FileURL("load", name), digest, size}, nil
}

// owner makes an account with a key that may read: a person for the class interactive, a machine for the others.
func owner(ctx context.Context, op *sdk.Client, name, class string) (string, error) {
	in := api.NewAccount{Name: name, Class: class}
	create := op.CreateServiceAccount
	if class == "interactive" {
		create = op.CreateUser
	}
	account, err := create(ctx, in)
	if err != nil {
		return "", fmt.Errorf("make the account %s: %w", name, err)
	}
	if err := op.Grant(ctx, "load", account.ID, "read"); err != nil {
		return "", err
	}
	key, err := op.CreateKey(ctx, account.ID, "load", 24*time.Hour)
	return key.Secret, err
}

// makeFile writes bytes that don't repeat and tells their digest.
func makeFile(name string, size int64) (digest string, err error) {
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.CopyN(io.MultiWriter(file, hash), rand.NewChaCha8([32]byte{1}), size)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), err
}

// freePort is an address of this machine that nothing listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// sent is how many bytes of content the server's sockets accepted.
func (s *server) sent(ctx context.Context) (float64, error) {
	return s.metric(ctx, "roadstead_download_sent_bytes_total")
}

// metric reads one of the server's metrics, by its name with the labels, as /metrics writes them.
func (s *server) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(text, []byte("\n"+name+" "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	var n float64
	if _, err := fmt.Sscan(string(line), &n); !found || err != nil {
		return 0, fmt.Errorf("the server's metrics lack %s", name)
	}
	return n, nil
}
