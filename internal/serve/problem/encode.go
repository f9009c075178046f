package problem

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/roadstead/roadstead/api"
)

// encode writes a problem as encoding/json does. A million clients in a queue are told little else than their place, so
// the shape of that answer is written out here, at a tenth of the cost; the rest of it is left to encoding/json.
func encode(p api.Problem) []byte {
	if p.Details != nil || p.Queue != nil && p.Queue.Why != nil {
		body, err := json.Marshal(p)
		if err != nil { // a Problem is plain data; this cannot happen
			return []byte(`{"code":"internal"}`)
		}
		return body
	}
	b := object(make([]byte, 0, 640))
	b = b.text("type", p.Type).text("title", p.Title).number("status", int64(p.Status)).text("code", p.Code)
	b = b.optional("reason", p.Reason).text("message", p.Message).optional("requestId", p.RequestID)
	if p.RetryAfterSeconds != 0 {
		b = b.number("retryAfterSeconds", p.RetryAfterSeconds)
	}
	if p.Queue != nil {
		b = b.wait(p.Queue)
	}
	return append(b, '}')
}

// object is the text of a JSON object that is not closed yet.
type object []byte

func (b object) wait(w *api.Wait) object {
	b = append(b.name("queue"), `{"known":`...)
	b = strconv.AppendBool(b, w.Known)
	if w.Position != 0 {
		b = b.number("position", int64(w.Position))
	}
	b = b.moment("startsAt", w.StartsAt).moment("startsEarliest", w.StartsEarliest).moment("startsLatest", w.StartsLatest)
	return append(b.moment("checkAt", &w.CheckAt).number("checkInMillis", w.CheckInMillis).text("class", w.Class), '}')
}

func (b object) name(name string) object {
	separator := byte(',')
	if len(b) == 0 {
		separator = '{'
	}
	b = append(b, separator, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func (b object) number(name string, v int64) object { return strconv.AppendInt(b.name(name), v, 10) }

func (b object) optional(name, v string) object {
	if v == "" {
		return b
	}
	return b.text(name, v)
}

func (b object) moment(name string, at *time.Time) object {
	if at == nil {
		return b
	}
	b = append(b.name(name), '"')
	b = at.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

func (b object) text(name, v string) object {
	b = b.name(name)
	for _, c := range []byte(v) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' { // encoding/json escapes it
			quoted, err := json.Marshal(v)
			if err != nil { // a string is always encoded
				quoted = []byte(`""`)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}
