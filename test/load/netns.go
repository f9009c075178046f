package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// playNamespace runs the fleet over a link that the kernel limits: the server lives in a network namespace whose only
// way out is a token bucket. The server isn't told the rate; it has to measure it.
func playNamespace(ctx context.Context, b *bench, s scenario) error {
	n, err := newNamespace(ctx, s)
	defer n.remove(b)
	if err != nil {
		return err
	}
	srv := b.plan(s, n.server()+":8080", nil, n.ip, "netns", "exec", n.name)
	defer srv.stop()
	return playFleet(ctx, b, s, srv, n.client, n.sent)
}

// namespace is a network namespace and the pair of devices that joins it to this machine.
type namespace struct {
	ip, tc        string
	name          string
	outer, inner  string // devices
	network       string // first three numbers of the addresses
	madeNamespace bool
}

// newNamespace makes the link. What it returns must be removed, whatever the error.
func newNamespace(ctx context.Context, s scenario) (*namespace, error) {
	id := os.Getpid() % 100000
	n := &namespace{name: fmt.Sprintf("roadstead-%d", id), outer: fmt.Sprintf("rs%dc", id), inner: fmt.Sprintf("rs%ds", id)}
	if os.Geteuid() != 0 {
		return n, errors.New("a network namespace needs root")
	}
	var err error
	if n.ip, err = find("ip"); err != nil {
		return n, err
	}
	if n.tc, err = find("tc"); err != nil {
		return n, err
	}
	if n.network, err = freeNetwork(); err != nil {
		return n, err
	}
	if err := n.run(ctx, n.ip, "netns", "add", n.name); err != nil {
		return n, err
	}
	n.madeNamespace = true
	return n, n.join(ctx, s)
}

// join lays the cable and narrows the server's end of it. The bucket holds what the link carries in ten milliseconds,
// and never less than two of the largest packets; the line before it is as long as 20 ms.
func (n *namespace) join(ctx context.Context, s scenario) error {
	burst := max(s.rate/100, 2*64<<10)
	steps := [][]string{
		{n.ip, "link", "add", n.outer, "type", "veth", "peer", "name", n.inner, "netns", n.name},
		{n.ip, "addr", "add", n.host() + "/24", "dev", n.outer},
		{n.ip, "link", "set", n.outer, "up"},
		{n.ip, "-n", n.name, "addr", "add", n.server() + "/24", "dev", n.inner},
		{n.ip, "-n", n.name, "link", "set", n.inner, "up"},
		{n.ip, "-n", n.name, "link", "set", "lo", "up"},
		{n.tc, "-n", n.name, "qdisc", "add", "dev", n.inner, "root", "tbf", "rate", fmt.Sprintf("%dbit", 8*s.rate),
			"burst", fmt.Sprint(burst), "latency", "20ms"},
	}
	for i := range s.stock {
		steps = append(steps, []string{n.ip, "addr", "add", n.client(i) + "/24", "dev", n.outer})
	}
	for _, step := range steps {
		if err := n.run(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

func (n *namespace) host() string        { return n.network + ".1" }
func (n *namespace) server() string      { return n.network + ".2" }
func (n *namespace) client(i int) string { return fmt.Sprintf("%s.%d", n.network, 10+i) }

// remove takes the namespace down; its device and the other end go with it.
func (n *namespace) remove(b *bench) {
	if !n.madeNamespace {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// The pair is deleted by its near end first: a namespace that a closing socket still holds would keep it.
	_ = n.run(ctx, n.ip, "link", "del", n.outer)
	if err := n.run(ctx, n.ip, "netns", "del", n.name); err != nil {
		b.say("%v", err)
	}
}

// sent is the qdisc's own count of bytes that left the server, headers included.
func (n *namespace) sent(ctx context.Context) (float64, error) {
	out, err := exec.CommandContext(ctx, n.tc, "-n", n.name, "-s", "-j", "qdisc", "show", "dev", n.inner).Output()
	if err != nil {
		return 0, fmt.Errorf("read the qdisc: %w", err)
	}
	var all []struct {
		Kind  string
		Bytes float64
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return 0, fmt.Errorf("read the qdisc: %w", err)
	}
	for _, q := range all {
		if q.Kind == "tbf" {
			return q.Bytes, nil
		}
	}
	return 0, errors.New("the link has lost its token bucket")
}

func (n *namespace) run(ctx context.Context, argv ...string) error {
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// find looks where administrators' tools live, too.
func find(tool string) (string, error) {
	for _, name := range []string{tool, "/usr/sbin/" + tool, "/sbin/" + tool} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is needed (Debian: iproute2)", tool)
}

// freeNetwork is a /24 of the block kept for benchmarks (RFC 2544) that no device of this machine is in.
func freeNetwork() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for i := range 256 {
		network := fmt.Sprintf("198.18.%d", (os.Getpid()+i)%256)
		taken := false
		for _, a := range addrs {
			taken = taken || strings.HasPrefix(a.String(), network+".")
		}
		if !taken {
			return network, nil
		}
	}
	return "", errors.New("every network of 198.18.0.0/16 is taken")
}
