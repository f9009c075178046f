package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func queueCommand(a *app) *cobra.Command {
	var watch bool
	var every spanFlag
	cmd := &cobra.Command{
		Use: "queue", Short: "Show the download queue by class, and when it will be empty (operators)", Args: cobra.NoArgs,
		Long: `Shows the download queue by class, and when it will be empty. For operators.

  WEIGHT         turns of the class while others wait
  WAITING        downloads in line for a seat
  ACTIVE         downloads that have one
  PAUSED         downloads that gave their seat back in the middle; they go on when their client asks again
  HELD           requests kept open until their seat comes, of clients that can't wait by themselves
  BYTES WAITING  what those in line have still to get
  FIRST WAITS    how long the first in line has waited

The rate in the first line is that which the link is reckoned with. The last lines say how good the start
estimates were lately; a tenth before p10 and nine tenths before p90 are right.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if !watch {
				q, err := c.Queue(cmd.Context())
				if err != nil {
					return err
				}
				return a.showQueue(q)
			}
			return a.watchQueue(cmd.Context(), c, max(time.Duration(every), time.Second))
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again, until interrupted")
	every = spanFlag(2 * time.Second)
	cmd.Flags().Var(&every, "every", "time between two looks with --watch")
	return cmd
}

// watchQueue repaints on a terminal and appends elsewhere: one JSON object a line, or one table after the other.
func (a *app) watchQueue(ctx context.Context, c *sdk.Client, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		q, err := c.Queue(ctx)
		if err != nil {
			return err
		}
		switch {
		case a.flags.output == "json":
			err = json.NewEncoder(a.out).Encode(q)
		default:
			if a.outTTY {
				_, _ = fmt.Fprint(a.out, "\x1b[H\x1b[2J")
			}
			err = a.showQueue(q)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (a *app) showQueue(q api.Queue) error {
	if a.flags.output == "json" {
		return a.json(q)
	}
	now := a.now()
	line := fmt.Sprintf("as of %s, %s: %d of %d seats in use", q.AsOf.In(now.Location()).Format("15:04:05"), q.Strategy, q.SeatsInUse, q.Seats)
	if q.Reserve > 0 {
		line += fmt.Sprintf(" (%d kept for interactive)", q.Reserve)
	}
	if q.RateBytes > 0 {
		line += ", " + amount(q.RateBytes) + "/s"
	}
	_, _ = fmt.Fprintln(a.out, line)
	waiting := 0
	err := show(a, q.Classes, []string{"CLASS", "WEIGHT", "WAITING", "ACTIVE", "PAUSED", "HELD", "BYTES WAITING", "FIRST WAITS"}, func(c api.QueueClass) []string {
		waiting += c.Waiting
		head := "-"
		if c.Waiting > 0 {
			head = span(time.Duration(c.HeadWaitSeconds * float64(time.Second)))
		}
		return []string{c.Class, strconv.Itoa(c.Weight), strconv.Itoa(c.Waiting), strconv.Itoa(c.Active), strconv.Itoa(c.Paused),
			strconv.Itoa(c.Held), amount(c.WaitingBytes), head}
	})
	switch {
	case err != nil:
		return err
	case waiting == 0:
		line = "nobody waits"
	case q.DrainsAt == nil:
		line = "when the queue will be empty isn't known yet"
	default:
		line = "the queue is empty about " + when(*q.DrainsAt, now) + ", if nothing else comes"
	}
	_, err = fmt.Fprintln(a.out, line)
	if e := q.Estimates; err == nil && e != nil {
		_, err = fmt.Fprintf(a.out, "of the last %s %.0f %% were told before: %.0f %% of these inside their interval, %.0f %% before p10, %.0f %% before p90\n",
			count(e.Starts, "start", "starts"), 100*e.Known, 100*e.Inside, 100*e.UnderP10, 100*e.UnderP90)
	}
	if err == nil && q.Advice != "" {
		_, err = fmt.Fprintln(a.out, "advice: "+printable(q.Advice))
	}
	return err
}
