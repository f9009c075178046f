package storetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Cluster is a PostgreSQL server of a test's own. It listens on a Unix socket only and is gone when the test ends.
type Cluster struct {
	dir  string
	made atomic.Int64
}

// StartPostgres starts a throwaway cluster from the newest installed binaries. Without any, the test is skipped; under
// CI it fails, for a skip nobody sees proves nothing.
func StartPostgres(t testing.TB) *Cluster {
	t.Helper()
	bin := postgresBin()
	if bin == "" {
		const how = "PostgreSQL is not installed: apt-get install postgresql"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	// Not t.TempDir: its parent is closed to the other user that the server runs as, and socket paths must be short.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	attr := asOther(t, dir)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = dir
		cmd.SysProcAttr = attr
		// A file, not a pipe: the server inherits it, and reading a pipe would wait for the server to end.
		out, err := os.CreateTemp(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(out.Name())
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("%s: %v\n%s%s", name, err, text, log)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	run("pg_ctl", "-D", data, "-w", "-t", "120", "-l", filepath.Join(dir, "log"),
		"-o", "-k "+dir+" -c listen_addresses='' -c fsync=on -c shared_buffers=32MB -c max_connections=120", "start")
	t.Cleanup(func() { run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop") })
	return &Cluster{dir: dir}
}

// postgresBin is the folder of the newest installed server, or empty.
func postgresBin() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		newest, best := "", -1
		for _, f := range found {
			v, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(f))))
			if err == nil && v > best {
				newest, best = filepath.Dir(f), v
			}
		}
		return newest
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// asOther gives dir to an unprivileged user and runs commands as that user when the test runs as root, which
// PostgreSQL refuses to run as.
func asOther(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr != nil || gerr != nil {
			continue
		}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	t.Fatal("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
	return nil
}

// Database makes an empty database and returns its connection string. Where the server can, the database sorts as
// English people do, so that a listing relying on the database's own order shows.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.conn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	name := fmt.Sprintf("t%d", c.made.Add(1))
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
	if err != nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.conn(name)
}

func (c *Cluster) conn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s", c.dir, database)
}
