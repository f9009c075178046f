package sdk

import (
	"net/http"
	"strings"
	"time"
)

// maxSeconds bounds what a header may say before it overflows a Duration; any wait is cut to an hour anyway (D-1.4).
const maxSeconds = 10 * 365 * 24 * 3600

// ParseRetryAfter reads a Retry-After value, a number of seconds or an HTTP date (RFC 9110, 10.2.3), as the time from
// now. A date in the past is zero. ok is false when the value is neither.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if seconds, ok := digits(value); ok {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxSeconds*time.Second), true
}

// digits reads a plain decimal number and clamps it to maxSeconds.
func digits(s string) (int64, bool) {
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), maxSeconds)
	}
	return n, true
}
