// Command polls measures what it costs to be asked by a million waiting downloads: a server with the real queue behind
// the real handlers is filled with sessions, and clients that keep their connections ask for random ones of them. The
// measure is the server's CPU for each poll against a bare handler's that answers the same bytes in the same run, its
// memory, and the part of the time that its ticks take. Accounts and files are in memory: their lookups are not the
// queue's. It prints one line a measure and fails when one is past its limit.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	sessions    = 1 << 20
	principals  = 10_000
	connections = 64
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("polls: ")
	serve := flag.String("serve", "", "internal: be the server, real or bare")
	level := flag.String("log", "info", "log level of the real server; its log goes to /dev/null")
	rounds := flag.Int("rounds", 5, "paired rounds; the median counts")
	length := flag.Duration("round", 2*time.Second, "length of one server's part of a round")
	flag.Parse()
	var err error
	ok := true
	switch *serve {
	case "real":
		err = serveReal(*level)
	case "bare":
		err = serveBare()
	default:
		ok, err = run(*level, *rounds, *length)
	}
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

// answer is what the real server answered once, for the bare one to repeat.
type answer struct {
	Status int
	Header map[string][]string
	Body   []byte
}

func run(level string, rounds int, length time.Duration) (bool, error) {
	began := time.Now()
	own, err := start(nil, "-serve", "real", "-log", level)
	if err != nil {
		return false, fmt.Errorf("start the server: %w", err)
	}
	defer own.stop()
	fmt.Printf("# %d sessions of %d principals in the queue after %.1f s\n", sessions, principals, time.Since(began).Seconds())
	sample, err := askOnce(own.addr)
	if err != nil {
		return false, err
	}
	fmt.Printf("# an answer: %d, %d bytes: %s\n", sample.Status, len(sample.Body), strings.TrimSpace(string(sample.Body)))
	bare, err := start(sample, "-serve", "bare")
	if err != nil {
		return false, fmt.Errorf("start the bare server: %w", err)
	}
	defer bare.stop()
	before, err := own.look()
	if err != nil {
		return false, err
	}
	from := time.Now()
	ratios, err := compare(own, bare, rounds, length)
	if err != nil {
		return false, err
	}
	after, err := own.look()
	if err != nil {
		return false, err
	}
	took := time.Since(from).Seconds()
	ticks, ticked := after.ticks-before.ticks, after.tickSeconds-before.tickSeconds
	if ticks == 0 || after.waiting < sessions*99/100 {
		return false, fmt.Errorf("%.0f ticks, %.0f sessions still waiting: this was not the queue to be measured", ticks, after.waiting)
	}
	fmt.Printf("# %.0f sessions wait; %.0f ticks of %.2f ms; most memory ever, filling the queue included: %.0f MB\n",
		after.waiting, ticks, 1000*ticked/ticks, after.peak/1e6)
	ok := report("polls_cpu_of_bare_handler", ratios[len(ratios)/2], 1.5)
	ok = report("polls_memory_mb", max(before.resident, after.resident)/1e6, 450) && ok
	return report("polls_ticks_of_time", ticked/took, 0.1) && ok, nil
}

// compare polls both servers in turns and gives the sorted ratios of their CPU for each poll.
func compare(own, bare *server, rounds int, length time.Duration) (ratios []float64, err error) {
	for round := range rounds + 1 {
		var cost [2]float64
		var polls [2]int
		for i, s := range []*server{own, bare} {
			if cost[i], polls[i], err = load(s, length); err != nil {
				return nil, err
			}
		}
		if round == 0 {
			continue // warms caches and heaps
		}
		ratios = append(ratios, cost[0]/cost[1])
		fmt.Printf("# round %d: %.1f us of CPU a poll (%d polls), bare handler %.1f us (%d)\n", round, 1e6*cost[0], polls[0], 1e6*cost[1], polls[1])
	}
	slices.Sort(ratios)
	return ratios, nil
}

func report(name string, value, limit float64) bool {
	ok := value <= limit
	fmt.Printf("measure=%s value=%.3g limit=%.3g ok=%v\n", name, value, limit, ok)
	return ok
}

// server is a child process.
type server struct {
	cmd  *exec.Cmd
	addr string
}

// start starts this program as a server, gives it what it is to answer, and waits for its address.
func start(repeat *answer, args ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	text, err := json.Marshal(repeat)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.addr, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		s.stop()
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended before it served")
		}
		return nil, err
	}
	s.addr = strings.TrimSpace(s.addr)
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill() // it may be gone already; Wait tells nothing we need
	_ = s.cmd.Wait()
}
