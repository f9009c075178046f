package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/delivery"
	"github.com/roadstead/roadstead/internal/governor"
)

// unreached is a ceiling that makes every slice take tokens and never wait.
const unreached = 1 << 50

// serveFile is the server process: one file, three ways.
func serveFile(path, congestion string) error {
	g, err := governor.New(governor.Config{Total: unreached}, clock.NewSystem())
	if err != nil {
		return err
	}
	open := func() (*os.File, error) { return os.Open(path) }
	c := delivery.Content{Name: "big", Digest: strings.Repeat("ab", 32), Size: fileSize, ModTime: time.Now(), Open: open}
	mux := http.NewServeMux()
	mux.HandleFunc("/governed", func(w http.ResponseWriter, r *http.Request) {
		a, err := delivery.Plan(r, c)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		f := g.Flow(r.RemoteAddr, [16]byte{})
		defer f.Close()
		if _, err := delivery.Send(w, r, a, f, delivery.Options{Idle: 30 * time.Second, OnSent: func(int64) {}}); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
	content := func(w http.ResponseWriter, r *http.Request) {
		f, err := open()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", c.ModTime, f)
	}
	mux.HandleFunc("/servecontent", content)
	mux.HandleFunc("/copied", func(w http.ResponseWriter, r *http.Request) {
		f := g.Flow(r.RemoteAddr, [16]byte{})
		defer f.Close()
		content(&copying{w, r, f}, r)
	})
	ln, err := listen(congestion)
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnContext: delivery.ConnContext}).Serve(ln)
}

// listen opens a free port with a congestion control of its own, the system's when it is empty.
func listen(congestion string) (*net.TCPListener, error) {
	choose := func(_, _ string, c syscall.RawConn) error {
		if congestion == "" {
			return nil
		}
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
		})
		return errors.Join(err, failure)
	}
	ln, err := (&net.ListenConfig{Control: choose}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// copying is the governed writer that loses sendfile: io.Copy hands it 32 KiB at a time.
type copying struct {
	http.ResponseWriter
	r *http.Request
	f *governor.Flow
}

func (c *copying) Write(p []byte) (int, error) {
	if err := c.f.Take(c.r.Context(), int64(len(p)), nil); err != nil {
		return 0, err
	}
	return c.ResponseWriter.Write(p)
}

// server is a child process that serves.
type server struct {
	cmd  *exec.Cmd
	addr string
	pids []int // whose CPU counts
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already; Wait tells nothing we need
	_ = s.cmd.Wait()
}

func startOwn(file, congestion string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-serve", file, "-congestion", congestion)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read its address: %w", err)
	}
	return &server{cmd: cmd, addr: strings.TrimSpace(addr), pids: []int{cmd.Process.Pid}}, nil
}

const nginxConf = `
daemon off; worker_processes 2; pid %[1]s/nginx.pid; error_log %[1]s/nginx.err; user %[3]s;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server { listen %[2]s; root %[1]s; }
}
`

func startNginx(dir, congestion string) (*server, error) {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, err
		}
	}
	ln, err := listen(congestion)
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	addr := ln.Addr().String()
	inherited, err := ln.File()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	user, err := exec.Command("id", "-un").Output()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxConf, dir, addr, strings.TrimSpace(string(user)))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "-c", conf, "-e", filepath.Join(dir, "nginx.err"))
	cmd.ExtraFiles = []*os.File{inherited}
	cmd.Env = append(os.Environ(), "NGINX=3;") // the listener that it takes over, as at an upgrade
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, addr: addr}
	// Giving it away made it block for both of us: a worker would wait in accept for what the other one has taken.
	if err := syscall.SetNonblock(int(inherited.Fd()), true); err != nil {
		s.stop()
		return nil, err
	}
	for range 100 {
		if s.pids = children(cmd.Process.Pid); len(s.pids) == 2 && reachable(addr) {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	why, _ := os.ReadFile(filepath.Join(dir, "nginx.err")) // a diagnosis only
	return nil, errors.New("it does not come up: " + string(why))
}

func reachable(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func children(pid int) (out []int) {
	p := strconv.Itoa(pid)
	b, err := os.ReadFile("/proc/" + p + "/task/" + p + "/children")
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// cpu is the processor time of processes so far, user and system, in seconds.
func cpu(pids []int) (float64, error) {
	var all time.Duration
	for _, pid := range pids {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // as clock_getcpuclockid names it
			return 0, err
		}
		all += time.Duration(t.Nano())
	}
	return all.Seconds(), nil
}
