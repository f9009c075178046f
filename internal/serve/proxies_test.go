package serve

import (
	"net/http/httptest"
	"testing"
)

func TestOrigin(t *testing.T) {
	proxies, err := ParseProxies("trustedProxies", "10.0.0.0/8, ::1,192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, peer string
		forwarded  []string
		proto      string
		client     string
		scheme     string
	}{
		{"direct", "203.0.113.5:99", nil, "", "203.0.113.5", "http"},
		{"a stranger's headers do not count", "203.0.113.5:99", []string{"1.2.3.4"}, "https", "203.0.113.5", "http"},
		{"one proxy", "10.1.1.1:5", []string{"198.51.100.9"}, "https", "198.51.100.9", "https"},
		{"read from the right", "10.1.1.1:5", []string{"6.6.6.6, 198.51.100.9, 10.2.2.2"}, "", "198.51.100.9", "http"},
		{"repeated header", "10.1.1.1:5", []string{"6.6.6.6", "198.51.100.9", "192.0.2.7"}, "", "198.51.100.9", "http"},
		{"nonsense stops the walk", "10.1.1.1:5", []string{"6.6.6.6, junk, 10.2.2.2"}, "javascript", "10.2.2.2", "http"},
		{"only proxies", "10.1.1.1:5", []string{"10.3.3.3"}, "", "10.3.3.3", "http"},
		{"address with port", "10.1.1.1:5", []string{"[2001:db8::1]:443"}, "", "2001:db8::1", "http"},
		{"mapped peer", "[::ffff:10.1.1.1]:5", []string{"198.51.100.9"}, "", "198.51.100.9", "http"},
		{"ipv6 peer", "[::1]:5", []string{"198.51.100.9"}, "", "198.51.100.9", "http"},
		{"unix peer", "@", []string{"198.51.100.9"}, "", "", "http"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.forwarded
			if c.proto != "" {
				r.Header.Set("X-Forwarded-Proto", c.proto)
			}
			o := proxies.originOf(r)
			if o.client != c.client || o.scheme != c.scheme {
				t.Errorf("got %q over %q, want %q over %q", o.client, o.scheme, c.client, c.scheme)
			}
		})
	}
	if _, err := ParseProxies("trustedProxies", "10.0.0.0/99"); err == nil {
		t.Error("a network that cannot be was accepted")
	}
}

func FuzzOrigin(f *testing.F) {
	proxies, _ := ParseProxies("p", "10.0.0.0/8")
	f.Add("10.0.0.1:1", "1.2.3.4, [::1]:9, x", "https")
	f.Fuzz(func(t *testing.T, peer, forwarded, proto string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header["X-Forwarded-For"] = []string{forwarded}
		r.Header["X-Forwarded-Proto"] = []string{proto}
		if o := proxies.originOf(r); o.scheme != "http" && o.scheme != "https" {
			t.Errorf("scheme %q", o.scheme)
		}
	})
}
