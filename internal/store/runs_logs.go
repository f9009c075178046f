package store

import (
	"context"
	"encoding/json"

	"github.com/roadstead/roadstead/api"
)

// A log line's number within its Run holds the number of its Attempt above and the line within the Attempt below, so
// that it only grows, whatever an Attempt that was taken for lost still sends.
const lineBits = 40

func logSeq(attempt int, line int64) int64 { return int64(attempt)<<lineBits | line }

// RunLogs is runs.ReadRecords'.
func (s *Store) RunLogs(ctx context.Context, run string, seq int64, limit int) ([]api.LogLine, error) {
	number, line := seq>>lineBits, seq&(1<<lineBits-1)
	type piece struct {
		attempt, body string
		number        int
		first         int64
	}
	// Pieces are at least one line each, so limit of them are enough; the first may lie before the line.
	pieces, err := list(ctx, s.read, func(r row) (p piece, err error) {
		return p, r.Scan(&p.attempt, &p.number, &p.first, &p.body)
	}, `
		SELECT attempt, number, first, body FROM run_logs
		WHERE run = $1 AND (number > $2 OR (number = $2 AND first + lines - 1 > $3)) ORDER BY number, first LIMIT $4`, run, number, line, min(limit, 64))
	var out []api.LogLine
	for _, p := range pieces {
		var lines []api.JobLine
		if err == nil {
			err = json.Unmarshal([]byte(p.body), &lines)
		}
		for i, l := range lines {
			one := logSeq(p.number, p.first+int64(i))
			if one > seq && len(out) < limit {
				out = append(out, api.LogLine{Seq: one, Attempt: p.attempt, At: l.At, Stream: l.Stream, Text: l.Text})
			}
		}
	}
	return out, s.fail("reading logs", err)
}
