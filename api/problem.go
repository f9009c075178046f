package api

import "time"

// Problem is the body of every refusal (RFC 9457 media type application/problem+json, with our members).
type Problem struct {
	Type              string   `json:"type"`
	Title             string   `json:"title"`
	Status            int      `json:"status"`
	Code              string   `json:"code"`
	Reason            string   `json:"reason,omitempty"`
	Message           string   `json:"message"`
	RequestID         string   `json:"requestId,omitempty"`
	Details           []Detail `json:"details,omitempty"`
	RetryAfterSeconds int64    `json:"retryAfterSeconds,omitempty"`
	Queue             *Wait    `json:"queue,omitempty"` // with reason download_queued
}

// Detail names one wrong field and the allowed form.
type Detail struct {
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

// Wait is a place in the download queue (D-2.3). When Known is false the place and the times are absent: they are
// known at the next tick.
type Wait struct {
	Known          bool       `json:"known"`
	Position       int        `json:"position,omitempty"` // 1-based
	StartsAt       *time.Time `json:"startsAt,omitempty"`
	StartsEarliest *time.Time `json:"startsEarliest,omitempty"`
	StartsLatest   *time.Time `json:"startsLatest,omitempty"`
	CheckAt        time.Time  `json:"checkAt"`       // ask again then; Retry-After says the same in whole seconds
	CheckInMillis  int64      `json:"checkInMillis"` // the same as a duration, for clients whose clock is off
	Class          string     `json:"class"`
	Why            *Why       `json:"why,omitempty"` // when the client asked: Prefer: why
}
