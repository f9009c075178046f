package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/roadstead/roadstead/internal/fault"
)

// Proxies are the networks whose forwarding headers count. From anybody else those headers are ignored, so that no
// client chooses its own address, scheme or request id.
type Proxies []netip.Prefix

// ParseProxies reads a comma-separated list of addresses and networks in CIDR form.
func ParseProxies(field, s string) (Proxies, error) {
	var out Proxies
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if a, err := netip.ParseAddr(part); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fault.Invalid(field, "must be a comma-separated list of addresses or CIDR networks, such as 10.0.0.0/8")
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// Contain reports whether the address is a trusted proxy's.
func (p Proxies) Contain(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, n := range p {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// origin is where a request came from.
type origin struct {
	client  string // address without a port
	scheme  string
	trusted bool // the peer is a proxy whose word counts
}

// originOf reads the forwarding headers from the right: each trusted proxy appended what it saw, so the first address
// from the right that is not a proxy's is the client; all to its left is the client's own invention.
func (p Proxies) originOf(r *http.Request) origin {
	o := origin{scheme: "http"}
	if r.TLS != nil {
		o.scheme = "https"
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		o.client, _, _ = net.SplitHostPort(r.RemoteAddr)
		return o
	}
	addr := peer.Addr().Unmap()
	o.client = addr.String()
	if o.trusted = p.Contain(addr); !o.trusted {
		return o
	}
	hops := listed(r.Header.Values("X-Forwarded-For"))
	protos := listed(r.Header.Values("X-Forwarded-Proto"))
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := parseHop(hops[i])
		if err != nil {
			break // what stands left of nonsense is worth no more than it
		}
		o.client = hop.String()
		if !p.Contain(hop) {
			break
		}
	}
	if n := len(protos); n > 0 && (protos[n-1] == "http" || protos[n-1] == "https") {
		o.scheme = protos[n-1]
	}
	return o
}

// parseHop reads an address with or without a port.
func parseHop(s string) (netip.Addr, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err
}

// listed splits header values that may be repeated and comma-separated.
func listed(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	}
	return out
}
