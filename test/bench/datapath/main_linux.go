// Command datapath measures what the way of the bytes costs the server, as ratios inside one run: the governed path
// against net/http's own, against copying, and against nginx (D-12.2). It prints one line per measure and fails when
// a limit is missed.
//
// All are measured over sockets as the system makes them. Its congestion control matters more than anything else: under
// bbr the kernel sets a timer for each packet, which doubles what sendfile costs on a loopback, whoever calls it. With
// -congestion reno nothing paces; then nginx, whose own work is the least, comes out ahead (see docs/STATUS.md).
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	fileSize  = 256 << 20
	rangeSize = 8 << 20
)

// measure is one ratio of CPU seconds per GiB and what it must not exceed.
type measure struct {
	name      string
	of, to    string // modes
	limit     float64
	perRounds []float64
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("datapath: ")
	serve := flag.String("serve", "", "internal: serve this file and print the address")
	rounds := flag.Int("rounds", 21, "paired rounds; the medians count")
	length := flag.Duration("round", 500*time.Millisecond, "length of one mode's part of a round")
	clients := flag.Int("clients", 64, "connections at once")
	congestion := flag.String("congestion", "", "congestion control of all servers' sockets, such as reno; empty: the system's")
	flag.Parse()
	if *serve != "" {
		log.Fatal(serveFile(*serve, *congestion))
	}
	ok, err := run(*rounds, *clients, *length, *congestion)
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(rounds, clients int, length time.Duration, congestion string) (bool, error) {
	dir, err := os.MkdirTemp("", "datapath")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "big")
	if err := os.WriteFile(file, make([]byte, fileSize), 0o600); err != nil {
		return false, err
	}
	own, err := startOwn(file, congestion)
	if err != nil {
		return false, fmt.Errorf("start our server: %w", err)
	}
	defer own.stop()
	nginx, err := startNginx(dir, congestion)
	if err != nil {
		return false, fmt.Errorf("start nginx (apt-get install nginx-light): %w", err)
	}
	defer nginx.stop()
	modes := []mode{
		{"servecontent", own, "/servecontent"}, {"governed", own, "/governed"}, {"copied", own, "/copied"}, {"nginx", nginx, "/big"},
	}
	measures := []*measure{
		{name: "datapath_governed_to_servecontent", of: "governed", to: "servecontent", limit: 1.15},
		{name: "datapath_governed_to_copied", of: "governed", to: "copied", limit: 0.55},
		{name: "datapath_governed_to_nginx", of: "governed", to: "nginx", limit: 1.15},
	}
	for round := range rounds + 1 {
		cost := map[string]float64{}
		for i := range modes {
			m := modes[(i+round)%len(modes)]
			if round%2 == 1 { // who comes before and who comes after change places
				m = modes[(len(modes)-1-i+round)%len(modes)]
			}
			if cost[m.name], err = load(m, clients, length); err != nil {
				return false, fmt.Errorf("%s: %w", m.name, err)
			}
		}
		if round == 0 {
			continue // warms caches, socket buffers and heaps
		}
		fmt.Printf("# round %d, CPU s/GiB at %d clients: governed %.3f servecontent %.3f copied %.3f nginx %.3f\n",
			round, clients, cost["governed"], cost["servecontent"], cost["copied"], cost["nginx"])
		for _, m := range measures {
			m.perRounds = append(m.perRounds, cost[m.of]/cost[m.to])
		}
	}
	return report(measures), nil
}

func report(measures []*measure) bool {
	all := true
	for _, m := range measures {
		slices.Sort(m.perRounds)
		v := m.perRounds[len(m.perRounds)/2]
		ok := v <= m.limit
		all = all && ok
		fmt.Printf("measure=%s value=%.3f limit=%.2f ok=%v\n", m.name, v, m.limit, ok)
	}
	return all
}
