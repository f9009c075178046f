package store

import (
	"context"
	"database/sql"
	"errors"
)

// QueueMark says whether downloads were waiting when the last process wrote it, so that a restart gives those waiting
// time to come back before it gives seats away (D-2.12).
func (s *Store) QueueMark(ctx context.Context) (waiters bool, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT waiters FROM queue_state WHERE id = 1`).Scan(&waiters)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return waiters, s.fail("reading the queue's mark", err)
}

// SetQueueMark writes whether downloads are waiting; call it when that changes.
func (s *Store) SetQueueMark(ctx context.Context, waiters bool) error {
	return s.update(ctx, "writing the queue's mark", func(tx *sql.Tx) error {
		_, err := exec(ctx, tx, `
			INSERT INTO queue_state (id, waiters) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET waiters = excluded.waiters`, waiters)
		return err
	})
}
