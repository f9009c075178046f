package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roadstead/roadstead/api"
)

// Config says which server a client talks to, and as whom.
type Config struct {
	URL       string       // base address, for example https://store.example:8443; required
	Key       string       // API key; empty for links and other public addresses
	HTTP      *http.Client // nil: a client of its own, without an overall time limit
	UserAgent string       // empty: roadstead-sdk
	Retry     Retry        // zero values: the defaults of D-1.2
	Clock     Clock        // nil: the machine's clock
}

// Client makes calls to one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	key   string
	http  *http.Client
	agent string
	retry Retry
	clock Clock
}

// New checks the configuration; it doesn't contact the server.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(cfg.URL, "/"))
	if err != nil {
		return nil, fmt.Errorf("read the server's address: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("the server's address %q must look like https://host[:port]", cfg.URL)
	}
	if strings.ContainsAny(cfg.Key, "\r\n\x00") {
		return nil, fmt.Errorf("the API key must be one line of text")
	}
	c := &Client{base: base, key: cfg.Key, http: cfg.HTTP, agent: cfg.UserAgent, retry: cfg.Retry.withDefaults(), clock: cfg.Clock}
	if c.http == nil {
		// A copy of the default transport: its dial and TLS limits stay, connections are not shared with strangers.
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 4
		c.http = &http.Client{Transport: t}
	}
	if c.agent == "" {
		c.agent = "roadstead-sdk"
	}
	if c.clock == nil {
		c.clock = systemClock{start: time.Now()}
	}
	return c, nil
}

// URL is the server's base address.
func (c *Client) URL() string { return c.base.String() }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// at makes an address on the server from a path that is already escaped.
func (c *Client) at(escapedPath string, query url.Values) string {
	s := c.base.String() + escapedPath
	if len(query) > 0 {
		s += "?" + query.Encode()
	}
	return s
}

// escapePath escapes each segment of a file's path and keeps the slashes between them.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// request makes a request that carries the key only to this client's own server: a link or a foreign address never
// learns it.
func (c *Client) request(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("User-Agent", c.agent)
	own := req.URL.Scheme == c.base.Scheme && req.URL.Host == c.base.Host
	if c.key != "" && own && !strings.HasPrefix(req.URL.Path, c.base.Path+api.PathLinks) {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// call makes one JSON call, with busy waits and the small retry budget of short calls; out may be nil.
func (c *Client) call(ctx context.Context, method, address string, in, out any) error {
	var payload []byte
	if in != nil {
		var err error
		if payload, err = json.Marshal(in); err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
	}
	op := c.operation(callRetry(c.retry, method), nil)
	return op.attempt(ctx, func(ctx context.Context) error {
		return c.callOnce(ctx, method, address, payload, out)
	})
}

// callOnce makes one attempt; headers are pairs, those without a value are left out.
func (c *Client) callOnce(ctx context.Context, method, address string, payload []byte, out any, headers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.retry.AttemptTimeout)
	defer cancel()
	var body io.Reader
	if payload != nil {
		body = strings.NewReader(string(payload))
	}
	req, err := c.request(ctx, method, address, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(err)
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 {
		return refusal(resp, c.clock.Wall())
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(out); err != nil {
		return broken(fmt.Errorf("read the server's answer: %w", err))
	}
	return nil
}

// drain reads a little of what is left so that the connection can be used again, and closes the body.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 16<<10)
	_ = body.Close()
}
