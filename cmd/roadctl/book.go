package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

func bookCommand(a *app) *cobra.Command {
	return group("book", "Keep a place in the download queue before the bytes are wanted", bookCreate(a), bookShow(a), bookCancel(a))
}

// bookFlags are the options of book create.
type bookFlags struct {
	id, key, class, digest string
	offset                 int64
	notBefore, notAfter    string
}

func bookCreate(a *app) *cobra.Command {
	var f bookFlags
	cmd := &cobra.Command{
		Use: "create REPO/PATH", Short: "Take a place in the queue for a file", Args: cobra.ExactArgs(1),
		Long: `Takes a place in the download queue for a file as it is now, and says when the download would start.

The place is kept while somebody asks for it: "roadctl book show ID" does, at the time it names. Where the start lies past
--not-after that is said, and the place is kept all the same: cancel it if it is of no use. With --not-before the download
does not start earlier, and it queues from then on.

The bytes come with any request that sends the id as Arkvory-Download-Id. The same --key with the same options finds the
booking instead of making another; without one each call books anew.`,
		Example: `  roadctl book create fleet/fw.img --not-after 06:00
  roadctl book create fleet/fw.img --class background --not-before 22:00 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := f.booking(a, args[0])
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if f.key == "" {
				f.key = sdk.NewKey()
			}
			b, err := c.Book(cmd.Context(), f.key, want)
			if err != nil {
				return err
			}
			return a.showBooking(b)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.id, "id", "", "the download's id (default: the server makes one)")
	fl.StringVar(&f.key, "key", "", "names this booking: asked again, it is found and not made twice")
	fl.StringVar(&f.class, "class", "", "ask for a lower class: interactive, release, bulk or background")
	fl.StringVar(&f.digest, "digest", "", "the object's digest; then the argument is the repository alone")
	fl.Int64Var(&f.offset, "offset", 0, "first byte still wanted, of a download that goes on")
	fl.StringVar(&f.notBefore, "not-before", "", "the download starts no earlier: RFC 3339 or HH:MM")
	fl.StringVar(&f.notAfter, "not-after", "", "say when the start lies past it: RFC 3339 or HH:MM")
	return cmd
}

// booking is what the command line asks for.
func (f bookFlags) booking(a *app, target string) (want api.NewBooking, err error) {
	want = api.NewBooking{Repository: target, Digest: f.digest, ID: f.id, Class: f.class, Offset: f.offset}
	if f.digest == "" {
		if want.Repository, want.Path, err = splitTarget(target); err != nil {
			return want, err
		}
	}
	if f.offset < 0 {
		return want, usagef("--offset must not be negative")
	}
	base := a.now()
	for _, at := range []struct {
		flag, text string
		to         **time.Time
	}{{"not-before", f.notBefore, &want.NotBefore}, {"not-after", f.notAfter, &want.NotAfter}} {
		t, err := parseInstant(at.flag, at.text, base)
		if err != nil {
			return want, err
		}
		if !t.IsZero() {
			*at.to, base = &t, t // --not-after 06:00 is the one after --not-before
		}
	}
	return want, nil
}

func bookShow(a *app) *cobra.Command {
	var ticket string
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show where a booking stands, which keeps it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			b, err := c.Booking(cmd.Context(), args[0], ticket)
			if err != nil {
				return err
			}
			return a.showBooking(b)
		},
	}
	cmd.Flags().StringVar(&ticket, "ticket", "", "the latest ticket of the booking: keeps the place over a server that lost it")
	return cmd
}

func bookCancel(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Give a booking up", Args: cobra.ExactArgs(1),
		Long: "Gives a booking up. Responses of the download that run end.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.CancelBooking(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.say("cancelled %s", args[0])
			return nil
		},
	}
}

// showBooking prints a booking: the id and where it stands; what to do about it goes to the notes.
func (a *app) showBooking(b api.Booking) error {
	now := a.now()
	if b.MissesNotAfter && b.NotAfter != nil {
		a.say("the start lies past %s", when(*b.NotAfter, now))
	}
	if b.LapsesAt != nil {
		a.say("lapses %s unless it is shown or downloaded before", when(*b.LapsesAt, now))
	}
	return showOne(a, b, "%s  %s", b.ID, bookingWords(b, now))
}

// bookingWords says where a booking stands.
func bookingWords(b api.Booking, now time.Time) string {
	switch {
	case b.State == api.BookingScheduled && b.NotBefore != nil:
		return "scheduled: queues from " + when(*b.NotBefore, now) + " on"
	case b.State != api.BookingQueued || b.Admission == api.AdmissionPerRequest:
		return b.State
	case !b.Known:
		return "queued: place not known yet"
	}
	s := fmt.Sprintf("queued: %s", ordinal(b.Position))
	if b.StartsAt == nil {
		return s + ", start not known yet"
	}
	s += ", starts about " + when(*b.StartsAt, now)
	if b.StartsEarliest != nil && b.StartsLatest != nil {
		s += ", between " + clockTime(*b.StartsEarliest, now) + " and " + clockTime(*b.StartsLatest, now)
	}
	return s
}
