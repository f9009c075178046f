package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func runsLogs(a *app) *cobra.Command {
	var follow, times bool
	cmd := &cobra.Command{
		Use: "logs RUN", Short: "Show what a Run wrote", Args: cobra.ExactArgs(1),
		Long: "Shows what a Run wrote, over all its Attempts, standard output and standard error in order. With -o json each line is\na JSON object. With --follow it goes on until the Run ends.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if !follow {
					for l, err := range c.RunLogs(ctx, args[0], 0) {
						if err != nil {
							return err
						}
						if err := a.showLine(l, times); err != nil {
							return err
						}
					}
					return nil
				}
				return a.follow(ctx, c, args[0], func(m sdk.RunMessage) error {
					if m.Log == nil {
						return nil
					}
					return a.showLine(*m.Log, times)
				})
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the Run ends")
	cmd.Flags().BoolVarP(&times, "times", "t", false, "begin each line with its time and stream")
	return cmd
}

func (a *app) showLine(l api.LogLine, times bool) error {
	if a.flags.output == "json" {
		return json.NewEncoder(a.out).Encode(l)
	}
	text := a.logText(l, a.outTTY)
	if times {
		text = l.At.In(a.now().Location()).Format("15:04:05.000") + " " + l.Stream + ": " + text
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// logText is a line as it may be shown: a terminal gets no control characters of strangers but tabs, a file gets what
// was written.
func (a *app) logText(l api.LogLine, terminal bool) string {
	if !terminal {
		return l.Text
	}
	parts := strings.Split(l.Text, "\t")
	for i, p := range parts {
		parts[i] = printable(p)
	}
	return strings.Join(parts, "\t")
}

func runsEvents(a *app) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "events RUN", Short: "Show what happened to a Run", Args: cobra.ExactArgs(1),
		Long: "Shows what happened to a Run, step by step. With -o json each event is a JSON object on a line. With --follow it goes\non until the Run ends.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				if !follow {
					for e, err := range c.RunEvents(ctx, args[0], 0) {
						if err != nil {
							return err
						}
						if err := a.showEvent(e); err != nil {
							return err
						}
					}
					return nil
				}
				return a.follow(ctx, c, args[0], func(m sdk.RunMessage) error {
					if m.Event == nil {
						return nil
					}
					return a.showEvent(*m.Event)
				})
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the Run ends")
	return cmd
}

func (a *app) showEvent(e api.RunEvent) error {
	if a.flags.output == "json" {
		return json.NewEncoder(a.out).Encode(e)
	}
	_, err := fmt.Fprintln(a.out, eventLine(e, a.now()))
	return err
}

// follow hands a Run's messages over until it ends, and says when the way to the server is broken.
func (a *app) follow(ctx context.Context, c *sdk.Client, run string, each func(sdk.RunMessage) error) error {
	for m, err := range c.FollowRun(ctx, run, sdk.Follow{Events: a.submitEvents()}) {
		if err != nil {
			return err
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return nil
}
