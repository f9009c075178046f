package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

type downloadFlags struct {
	file, class, digest, notBefore, notAfter string
	waitLimit                                spanFlag
	fresh, verbose                           bool
}

func downloadCommand(a *app) *cobra.Command {
	var f downloadFlags
	cmd := &cobra.Command{
		Use: "download REPO/PATH | URL | LINK", Short: "Download a file: wait in the queue, resume, verify", Args: cobra.ExactArgs(1),
		Long: `Downloads one file. While the server is busy it waits as long as it takes, telling the place in the
queue and the expected start. The bytes arrive in FILE.part and become FILE once their SHA-256 is
verified; a FILE that is there already is replaced then. After any interruption, kill -9 included,
the same command goes on where it stood, with its place in the queue.`,
		Example: "  roadctl download fleet/firmware-7.2.img\n  roadctl download fleet/firmware-7.2.img -f /srv/fw.img --class bulk --not-before 22:00 --not-after 06:00",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.download(cmd.Context(), args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "destination file, or a folder (default: the file's own name, here)")
	fl.StringVar(&f.class, "class", "", "ask for a lower class: interactive, release, bulk or background")
	fl.Var(&f.waitLimit, "wait-limit", "give up waiting after so long, for example 2h (default: never)")
	fl.StringVar(&f.notBefore, "not-before", "", "don't ask earlier: RFC 3339, or HH:MM for its next occurrence")
	fl.StringVar(&f.notAfter, "not-after", "", "give up if the start would be later: RFC 3339, or HH:MM")
	fl.StringVar(&f.digest, "digest", "", "insist on this SHA-256 (64 hex digits)")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say why the download waits")
	fl.BoolVar(&f.fresh, "fresh", false, "begin anew, whatever an earlier run left")
	return cmd
}

func (a *app) download(ctx context.Context, target string, f downloadFlags) error {
	req, err := f.request(a.now())
	if err != nil {
		return err
	}
	c, address, err := a.source(target)
	if err != nil {
		return err
	}
	defer c.Close()
	req.URL = address
	if req.File, err = destination(ctx, c, address, f.file); err != nil {
		return err
	}
	r := a.report(filepath.Base(req.File))
	req.Events, req.Why = r.event, f.verbose
	if f.verbose {
		req.Events = (&reasons{a: a, to: r}).event
	}
	result, err := c.Download(ctx, req)
	r.close()
	if err != nil {
		return kept(err, req.File)
	}
	verified := "verified"
	if !result.Verified {
		verified = "not verified: the server names no digest"
	}
	return showOne(a, result, "%s  %s  %s  %s", result.File, amount(result.Size), result.Digest, verified)
}

// request reads the flags that need reading.
func (f downloadFlags) request(now time.Time) (req sdk.Download, err error) {
	req = sdk.Download{Class: f.class, WaitLimit: time.Duration(f.waitLimit), Fresh: f.fresh}
	switch f.class {
	case "", "interactive", "release", "bulk", "background":
	default:
		return req, usagef("--class must be interactive, release, bulk or background")
	}
	if f.digest != "" {
		var ok bool
		if req.Digest, ok = sdk.ParseDigest(f.digest); !ok {
			return req, usagef("--digest must be 64 hex digits")
		}
	}
	if req.NotBefore, err = parseInstant("not-before", f.notBefore, now); err != nil {
		return req, err
	}
	base := now // 22:00 to 06:00 is one night, whenever it is asked for
	if req.NotBefore.After(now) {
		base = req.NotBefore
	}
	if req.NotAfter, err = parseInstant("not-after", f.notAfter, base.In(now.Location())); err != nil {
		return req, err
	}
	if !req.NotAfter.IsZero() && req.NotAfter.Before(req.NotBefore) {
		return req, usagef("--not-after lies before --not-before")
	}
	return req, nil
}

// source finds the server and the address of what is to be downloaded. A full address needs no settings; the key is
// used only if it belongs to that server.
func (a *app) source(target string) (*sdk.Client, string, error) {
	s, err := a.settings()
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		u, err := url.Parse(target)
		if err != nil {
			return nil, "", usagef("the address is not understood: %v", err)
		}
		u.Fragment = ""
		key := s.saved.Keys[origin(target)]
		if origin(s.url.value) == origin(target) {
			key = s.key.value
		}
		c, err := a.clientFor(u.Scheme+"://"+u.Host, key)
		return c, u.String(), err
	}
	c, err := a.clientFor(s.url.value, s.key.value)
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(target, api.PathLinks) {
		return c, c.URL() + target, nil
	}
	repository, name, err := splitTarget(target)
	if err != nil {
		return nil, "", err
	}
	return c, c.FileURL(repository, name), nil
}

// destination decides where the file goes. A link's address says nothing of the name; the server does.
func destination(ctx context.Context, c *sdk.Client, address, file string) (string, error) {
	if file == "-" {
		return "", usagef("--file must name a file: bytes are verified before anybody sees them, so they can't go to standard output")
	}
	folder := strings.HasSuffix(file, "/") || isDir(file)
	if file != "" && !folder {
		return file, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", usagef("the address is not understood: %v", err)
	}
	name := path.Base(u.Path)
	if strings.Contains(u.Path, api.PathLinks) {
		head, err := c.Head(ctx, address)
		if e, ok := errors.AsType[*sdk.Error](err); ok && e.Status == http.StatusNotFound {
			return "", &linkError{e}
		}
		if err != nil {
			return "", err
		}
		if head.Name != "" {
			name = head.Name
		}
	}
	if name = safeName(name); name == "" {
		return "", usagef("the address gives no file name; name one with --file")
	}
	if folder {
		if err := os.MkdirAll(file, 0o777); err != nil {
			return "", fmt.Errorf("make the destination folder: %w", err)
		}
	}
	return filepath.Join(file, name), nil
}

// linkError is a link that leads nowhere; the answer to HEAD has no words for it.
type linkError struct{ err *sdk.Error }

func (e *linkError) Error() string { return "the link was revoked, has expired, or never was" }
func (e *linkError) Unwrap() error { return e.err }

func isDir(file string) bool {
	info, err := os.Stat(file)
	return file != "" && err == nil && info.IsDir()
}

// safeName takes the last part of a foreign name; what could lead elsewhere or hide is refused.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	if name == "" || strings.HasPrefix(name, ".") || printable(name) != name {
		return ""
	}
	return name
}

// kept tells what an unfinished download left, which the same command takes up again.
func kept(err error, file string) error {
	part := sdk.PartialFile(file)
	info, serr := os.Stat(part)
	if serr != nil || exitCode(err) == exitUsage {
		return err
	}
	note := "your place in the queue; to go on, run the same command again"
	if info.Size() > 0 {
		note = fmt.Sprintf("%s in %s; to go on, run the same command again", amount(info.Size()), part)
	}
	return &keptError{err, note}
}
