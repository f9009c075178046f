package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

const secretsHelp = `Secrets are values that Runs are given as files when they start. They go in and never come out.
The value comes from --file or from standard input, never from the command line, where others could see it. One
line end after it is dropped; --raw keeps it.`

func secretsCommand(a *app) *cobra.Command {
	cmd := group("secrets", "Secrets for Runs", secretsPut(a, false), secretsPut(a, true), secretsList(a), secretsScope(a), secretsDelete(a), secretsRotateKey(a))
	cmd.Long = secretsHelp
	return cmd
}

func secretsPut(a *app, again bool) *cobra.Command {
	var tenant, file string
	var packages []string
	var raw bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a secret", Args: cobra.ExactArgs(1), Long: secretsHelp,
		Example: "  roadctl secrets create db-password --package report < password.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				value, err := a.askSecret(ctx, file, raw)
				if err != nil {
					return err
				}
				put := c.RotateSecret
				if !again {
					put = func(ctx context.Context, tenant, name string, value []byte) (api.Secret, error) {
						return c.CreateSecret(ctx, tenant, name, value, packages)
					}
				}
				s, err := put(ctx, tenant, args[0], value)
				if err != nil {
					return err
				}
				return showOne(a, s, "%s: version %d", s.Name, s.Version)
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id, for operators (default: your own)")
	cmd.Flags().StringVar(&file, "file", "", "file that holds the value (default: standard input)")
	cmd.Flags().BoolVar(&raw, "raw", false, "keep a line end after the value")
	if again {
		cmd.Use, cmd.Short, cmd.Example = "rotate NAME", "Give a secret another value; Runs that start from now on get it", ""
	} else {
		cmd.Flags().StringSliceVar(&packages, "package", nil, "package that gets it; may be repeated (default: every Run of the tenant)")
	}
	return cmd
}

const maxSecret = 1 << 20 // the server says how much less it is

// askSecret reads a value from a file or from standard input; on a terminal it is one line that isn't echoed.
func (a *app) askSecret(ctx context.Context, file string, raw bool) ([]byte, error) {
	in := a.in
	if terminal, ok := a.in.(*os.File); ok && file == "" && a.inTTY {
		_, _ = fmt.Fprint(a.err, "Value: ")
		value, err := readHidden(ctx, int(terminal.Fd()))
		_, _ = fmt.Fprintln(a.err)
		if err != nil {
			return nil, fmt.Errorf("read the value: %w", err)
		}
		return value, nil
	}
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the value: %w", err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, maxSecret))
	if err != nil {
		return nil, fmt.Errorf("read the value: %w", err)
	}
	if !raw {
		value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	}
	if len(value) == 0 {
		return nil, usagef("no value given: name a file with --file, or pass the value on standard input")
	}
	return value, nil
}

func secretsList(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "ls", Short: "List secrets, without their values", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.Secrets(ctx, tenant))
				if err != nil {
					return err
				}
				return show(a, all, []string{"NAME", "VERSION", "PACKAGES", "ROTATED"}, func(s api.Secret) []string {
					return []string{s.Name, itoa(s.Version), forWhom(s), when(s.RotatedAt, a.now())}
				})
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id, for operators (default: your own)")
	return cmd
}

func forWhom(s api.Secret) string {
	if len(s.Packages) == 0 {
		return "every run"
	}
	return strings.Join(s.Packages, ", ")
}

func secretsScope(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "scope NAME [PACKAGE...]", Short: "Say which packages get a secret; without any, every Run of the tenant", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				s, err := c.ScopeSecret(ctx, tenant, args[0], args[1:])
				if err != nil {
					return err
				}
				return showOne(a, s, "%s: for %s", s.Name, forWhom(s))
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id, for operators (default: your own)")
	return cmd
}

func secretsDelete(a *app) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "rm NAME", Short: "Forget a secret and every value it had", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if err := c.DeleteSecret(ctx, tenant, args[0]); err != nil {
					return err
				}
				a.say("deleted %s", args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant id, for operators (default: your own)")
	return cmd
}

func secretsRotateKey(a *app) *cobra.Command {
	var resealOnly bool
	cmd := &cobra.Command{
		Use: "rotate-key", Short: "Make a new key and seal every secret anew under it (operators)", Args: cobra.NoArgs,
		Long: `Makes a new key in the server's key file and seals every secret anew under it. The keys before stay in the
file, since older backups of the database need them; delete their lines once there are none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				done, err := c.RotateSecretsKey(ctx, resealOnly)
				if err != nil {
					return err
				}
				if done.Unopened > 0 {
					a.say("warning: %d values could not be opened; is a key missing from the server's key file?", done.Unopened)
				}
				return showOne(a, done, "key %s, %d values sealed anew", done.Key, done.Resealed)
			})
		},
	}
	cmd.Flags().BoolVar(&resealOnly, "reseal-only", false, "make no new key; go on with a rotation that was interrupted")
	return cmd
}
