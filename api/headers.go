// Package api is the wire contract: header names, error codes and JSON shapes shared by server, SDK and tools.
// It holds no logic. Names are those of the design documents.
package api

// Request and answer headers of downloads (D-2.2, D-2.3, D-8.1).
const (
	HeaderDownloadID    = "Arkvory-Download-Id"    // made by the client, one per download; 1..64 of A-Z a-z 0-9 . _ -
	HeaderDownloadClass = "Arkvory-Download-Class" // asked: may only lower; answered: the applied class
	HeaderQueueTicket   = "Arkvory-Queue-Ticket"   // signed place; send back the latest
	HeaderQueuePosition = "Arkvory-Queue-Position" // 1-based place while waiting
	HeaderStartsAt      = "Arkvory-Starts-At"      // RFC 3339 point estimate while waiting
	HeaderRequestID     = "X-Request-Id"
	HeaderIdempotency   = "Idempotency-Key" // made by the client, one per booking or submit; the same again answers the same (D-2.14, R-2.4)
	PreferWhy           = "why"             // in Prefer (RFC 7240): a busy answer says why the session waits (D-11.1)
)

// Reasons inside the code busy.
const (
	ReasonQueued    = "download_queued"  // waiting for a seat: keep asking, the place is kept
	ReasonRanges    = "range_limit"      // too many responses of this session at once: place kept, ask in a second
	ReasonSessions  = "sessions_limit"   // the queue is full (D-7.1)
	ReasonPending   = "admission_queued" // the per-request queue for small objects is full (D-2.5)
	ReasonDraining  = "shutting_down"    // the server is stopping (D-7.4)
	ReasonScheduled = "booked_for_later" // the booking's notBefore lies ahead (D-2.14)
)

// Path prefixes of the server.
const (
	PathFiles   = "/files/"          // /files/{repository}/{path}
	PathRuns    = "/api/v1/runs/"    // + id
	PathLinks   = "/l/"              // /l/{token}
	PathUploads = "/api/v1/uploads/" // resumable uploads, tus 1.0
)
