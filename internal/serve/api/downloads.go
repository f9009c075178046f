package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/artifacts"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/serve/request"
)

// Bookings keeps places in the download queue that were asked for ahead of the bytes (D-2.14). What is not the caller's
// is not found.
type Bookings interface {
	// Book blocks until the place is known, about half a second. made is false for a repeated Idempotency-Key.
	Book(ctx context.Context, want downloads.Booking, find func(context.Context) (downloads.Object, error)) (out api.Booking, made bool, err error)
	Booked(ctx context.Context, p identity.Principal, id, ticket string) (api.Booking, error)
	CancelBooking(ctx context.Context, p identity.Principal, id string) error
}

// Objects finds what is to be downloaded; what the caller may not see is not found.
type Objects interface {
	Stat(ctx context.Context, p identity.Principal, repository, path string) (artifacts.File, error)
	StatDigest(ctx context.Context, p identity.Principal, repository, digest string) (artifacts.File, error)
}

type bookingPost struct {
	Key    string `header:"Idempotency-Key" required:"true" minLength:"1" maxLength:"255" doc:"Made by the client, one per booking; the same again with the same body answers with the same booking."`
	Ticket string `header:"Arkvory-Queue-Ticket" doc:"The latest ticket of this download, if it has one."`
	Body   api.NewBooking
}

type bookingOf struct {
	ID     string `path:"id"`
	Ticket string `header:"Arkvory-Queue-Ticket" doc:"The latest ticket of this download."`
}

// bookingAnswer says in its header what bytes would come with (D-2.3).
type bookingAnswer struct {
	Status     int
	Location   string `header:"Location"`
	RetryAfter string `header:"Retry-After"`
	Ticket     string `header:"Arkvory-Queue-Ticket"`
	Class      string `header:"Arkvory-Download-Class"`
	Body       api.Booking
}

func (o *operations) downloads(a huma.API) {
	const path = prefix + "/downloads"
	huma.Register(a, huma.Operation{
		Method: http.MethodPost, Path: path, OperationID: "bookDownload", DefaultStatus: http.StatusCreated,
		Summary:     "Book a download: a place in the queue, with its estimate, before the first byte is asked for",
		Description: "The session is the one of a GET of the same object with the booking's id as Arkvory-Download-Id. 201 for a new booking, 200 for a repeated Idempotency-Key.",
	}, func(ctx context.Context, in *bookingPost) (*bookingAnswer, error) {
		out, made, err := o.book(ctx, in)
		if err != nil {
			return nil, refusal(ctx, err)
		}
		answer := answerBooking(out)
		if answer.Status = http.StatusOK; made {
			answer.Status = http.StatusCreated
		}
		return answer, nil
	})
	huma.Register(a, huma.Operation{
		Method: http.MethodGet, Path: path + "/{id}", OperationID: "followDownload",
		Summary: "Follow a booking: where it stands and why it waits; asking confirms it, and takes the seat when it is there",
	}, func(ctx context.Context, in *bookingOf) (*bookingAnswer, error) {
		out, err := o.Bookings.Booked(ctx, request.From(ctx).Caller, in.ID, in.Ticket)
		if err != nil {
			return nil, refusal(ctx, err)
		}
		return answerBooking(out), nil
	})
	act(a, route{"DELETE", "/downloads/{id}", "cancelDownload", "Cancel a booked download: its place is given up, its running responses end"},
		func(ctx context.Context, caller identity.Principal, in *bookingOf) error {
			return o.Bookings.CancelBooking(ctx, caller, in.ID)
		})
}

func answerBooking(b api.Booking) *bookingAnswer {
	a := &bookingAnswer{Status: http.StatusOK, Location: prefix + "/downloads/" + b.ID, Ticket: b.Ticket, Class: b.Class, Body: b}
	if b.State == api.BookingQueued || b.State == api.BookingScheduled {
		a.RetryAfter = strconv.FormatInt((b.CheckInMillis+999)/1000, 10)
	}
	return a
}

func (o *operations) book(ctx context.Context, in *bookingPost) (api.Booking, bool, error) {
	caller, ask := request.From(ctx).Caller, in.Body
	if (ask.Path == "") == (ask.Digest == "") {
		return api.Booking{}, false, fault.Invalid("path", "give either path or digest")
	}
	if ask.Class != "" { // refused here, where it is a field of the body and not a header
		if _, err := class.Parse("class", ask.Class); err != nil {
			return api.Booking{}, false, err
		}
	}
	asked, err := json.Marshal(inUTC(ask))
	if err != nil {
		return api.Booking{}, false, fmt.Errorf("write the booking down: %w", err)
	}
	return o.Bookings.Book(ctx, downloads.Booking{
		Principal: caller, IdempotencyKey: in.Key, Body: string(asked), DownloadID: ask.ID, Class: ask.Class, Ticket: in.Ticket,
		Offset: ask.Offset, NotBefore: orZero(ask.NotBefore), NotAfter: orZero(ask.NotAfter),
	}, func(ctx context.Context) (downloads.Object, error) {
		if ask.Digest != "" {
			f, err := o.Objects.StatDigest(ctx, caller, ask.Repository, ask.Digest)
			return downloads.Object{ID: f.Digest, Repository: ask.Repository, Digest: f.Digest, Size: f.Size}, err
		}
		f, err := o.Objects.Stat(ctx, caller, ask.Repository, ask.Path)
		return downloads.Object{ID: f.RevisionID(), Repository: f.Repository, Path: f.Path, Digest: f.Digest, Size: f.Size}, err
	})
}

// inUTC spells the same instants the same way.
func inUTC(b api.NewBooking) api.NewBooking {
	for _, t := range []**time.Time{&b.NotBefore, &b.NotAfter} {
		if *t != nil {
			utc := (*t).UTC()
			*t = &utc
		}
	}
	return b
}
