package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"time"
)

const ticketKeyBytes = 32

// TicketKey is the key that signs places in the download queue: made by the first process that asks, the same for all
// of them ever after (D-8.3).
func (s *Store) TicketKey(ctx context.Context) (key []byte, err error) {
	err = s.update(ctx, "reading the ticket key", func(tx *sql.Tx) error {
		made := make([]byte, ticketKeyBytes)
		if _, err := rand.Read(made); err != nil {
			return err
		}
		// The insert waits for one that is under way and changes nothing when the row is there; then all read the
		// same row.
		_, err := exec(ctx, tx, `
			INSERT INTO ticket_key (id, secret, created_at) VALUES (1, $1, $2) ON CONFLICT (id) DO NOTHING`,
			hex.EncodeToString(made), time.Now().UnixMilli())
		if err != nil {
			return err
		}
		var text string
		if err := tx.QueryRowContext(ctx, `SELECT secret FROM ticket_key WHERE id = 1`).Scan(&text); err != nil {
			return err
		}
		key, err = hex.DecodeString(text)
		return err
	})
	return key, err
}
