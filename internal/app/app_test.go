package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/fault"
)

func testConfig(t *testing.T) Config {
	c := Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	return c
}

func TestFirstStartSaysOnceHowToSignIn(t *testing.T) {
	cfg := testConfig(t)
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		a, err := Open(t.Context(), cfg, Options{Out: out})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(cfg.Data, "operator.key")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("operator.key: %v %v", info, err)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(first.String(), file) || strings.Contains(first.String(), strings.TrimSpace(string(key))) {
		t.Errorf("the first start says %q", first.String())
	}
	if second.Len() > 0 {
		t.Errorf("the second start says %q", second.String())
	}
}

func TestTwoServersNeverShareADirectory(t *testing.T) {
	cfg := testConfig(t)
	a, err := Open(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Open(t.Context(), cfg, Options{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second server opened: %v %v", b, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatalf("after the first closed: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestBusyAddressNamesTheSetting(t *testing.T) {
	a, err := Open(t.Context(), testConfig(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	cfg := testConfig(t)
	cfg.Listen = a.Addr()
	if _, err := Open(t.Context(), cfg, Options{}); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "ROADSTEAD_LISTEN") {
		t.Errorf("got %v", err)
	}
	cfg.Listen = "127.0.0.1:99999" // nobody else has it, and it never comes free
	if _, err := Open(t.Context(), cfg, Options{}); !fault.Is(err, fault.InvalidInput) || !strings.Contains(err.Error(), "ROADSTEAD_LISTEN") {
		t.Errorf("got %v", err)
	}
}

// writePair writes a self-signed certificate for the loopback.
func writePair(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSReadsItsCertificateAnew(t *testing.T) {
	cfg := testConfig(t)
	dir := t.TempDir()
	cfg.TLSCertFile, cfg.TLSKeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, cfg.TLSCertFile, cfg.TLSKeyFile, 1)
	said := make(logged, 16)
	a, err := Open(t.Context(), cfg, Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	serial := func() int64 {
		// The certificate is self-signed: only its number matters here.
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		res, err := client.Get(a.URL() + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != 200 || res.ProtoMajor != 1 {
			t.Errorf("%s %d", res.Proto, res.StatusCode)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Errorf("serial %d", n)
	}
	writePair(t, cfg.TLSCertFile, cfg.TLSKeyFile, 2)
	a.Reload()
	said.wait("certificate anew")
	if n := serial(); n != 2 {
		t.Errorf("after the reload: serial %d", n)
	}
	if err := os.WriteFile(cfg.TLSKeyFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Reload()
	said.wait("stays as it was")
	if n := serial(); n != 2 {
		t.Errorf("a broken file replaced the certificate: serial %d", n)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// logged lets a test wait for a line of the log.
type logged chan string

func (l logged) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default: // nobody waits for so many lines
	}
	return len(p), nil
}

func (l logged) wait(text string) {
	for !strings.Contains(<-l, text) {
	}
}
