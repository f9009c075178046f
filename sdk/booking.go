package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/roadstead/roadstead/api"
)

// Book asks for a place in the download queue ahead of the bytes (D-2.14). key names the booking: after a fault the
// same call with the same key finds it instead of making another; NewKey makes one. A Download of the object whose ID
// is the booking's takes the place up.
func (c *Client) Book(ctx context.Context, key string, want api.NewBooking) (out api.Booking, err error) {
	payload, err := json.Marshal(want)
	if err != nil {
		return out, fmt.Errorf("write the request: %w", err)
	}
	op := c.operation(callRetry(c.retry, http.MethodPut), nil) // sent twice it has its effect once
	address := c.at(apiRoot+"downloads", nil)
	err = op.attempt(ctx, func(ctx context.Context) error {
		return c.callOnce(ctx, http.MethodPost, address, payload, &out, api.HeaderIdempotency, key)
	})
	return out, err
}

// NewKey makes an Idempotency-Key: 128 random bits.
func NewKey() string { return newID() }

// Booking follows a booking; ask again at its CheckAt, or it lapses. The latest ticket keeps the place whatever happens
// to the server; it may be empty.
func (c *Client) Booking(ctx context.Context, id, ticket string) (out api.Booking, err error) {
	op := c.operation(callRetry(c.retry, http.MethodGet), nil)
	address := c.at(apiRoot+"downloads/"+url.PathEscape(id), nil)
	err = op.attempt(ctx, func(ctx context.Context) error {
		return c.callOnce(ctx, http.MethodGet, address, nil, &out, api.HeaderQueueTicket, ticket)
	})
	return out, err
}

// CancelBooking gives a booked download up; its running responses end.
func (c *Client) CancelBooking(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, c.at(apiRoot+"downloads/"+url.PathEscape(id), nil), nil, nil)
}
