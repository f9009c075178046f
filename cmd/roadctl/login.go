package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/roadstead/roadstead/api"
)

func loginCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "login URL", Short: "Check an API key and remember it for a server", Args: cobra.ExactArgs(1),
		Long: `Asks the server who the API key belongs to, then remembers server and key in the settings file, which
only you can read. The key comes from --key-file or from standard input, never from the command line.`,
		Example: "  roadctl login https://store.example --key-file key.txt\n  roadctl login http://127.0.0.1:8080 < key.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.login(cmd.Context(), strings.TrimRight(args[0], "/"))
		},
	}
}

func (a *app) login(ctx context.Context, address string) error {
	if c, err := a.clientFor(address, ""); err != nil {
		return err // before anybody is asked for a key
	} else {
		c.Close()
	}
	key, err := a.askKey(ctx)
	if err != nil {
		return err
	}
	c, err := a.clientFor(address, key)
	if err != nil {
		return err
	}
	defer c.Close()
	if exposed(address) {
		a.say("warning: over http the key travels readable to everyone on the way; use https where you can")
	}
	me, err := c.Whoami(ctx)
	if err != nil {
		return fmt.Errorf("sign in to %s: %w", address, err)
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	if s.saved.Keys == nil {
		s.saved.Keys = map[string]string{}
	}
	s.saved.URL, s.saved.Keys[origin(address)] = address, key
	if err := s.saved.save(s.file); err != nil {
		return err
	}
	a.say("remembered in %s", s.file)
	return a.showMe(address, me)
}

// askKey reads the key from a file or from standard input; on a terminal it isn't echoed.
func (a *app) askKey(ctx context.Context) (string, error) {
	if a.flags.keyFile != "" {
		return readKey(a.flags.keyFile)
	}
	var text string
	if f, ok := a.in.(*os.File); ok && a.inTTY {
		_, _ = fmt.Fprint(a.err, "API key: ")
		raw, err := readHidden(ctx, int(f.Fd()))
		_, _ = fmt.Fprintln(a.err)
		if err != nil {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		text = string(raw)
	} else {
		line, err := bufio.NewReader(io.LimitReader(a.in, 4096)).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", fmt.Errorf("read the API key: %w", err)
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usagef("no API key given: name a file with --key-file, or pass the key on standard input")
	}
	return text, nil
}

// readHidden reads a line that the terminal doesn't show. When ctx ends first the terminal shows again what is typed; the
// reader is left behind and goes with the process.
func readHidden(ctx context.Context, terminal int) ([]byte, error) {
	was, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	type line struct {
		text []byte
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		lines <- line{text, err}
	}()
	select {
	case l := <-lines:
		return l.text, l.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(terminal, was))
	}
}

// exposed reports plain http to another machine.
func exposed(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func whoamiCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show who the API key belongs to", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			me, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			return a.showMe(c.URL(), me)
		},
	}
}

func (a *app) showMe(address string, me api.Whoami) error {
	operator := ""
	if me.Operator {
		operator = ", operator"
	}
	return showOne(a, me, "%s at %s (%s of tenant %s, class %s%s)", me.Name, address, me.Kind, me.Tenant, me.Class, operator)
}
