package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
)

// SaveJournal is downloads.Journal's.
func (s *Store) SaveJournal(ctx context.Context, b downloads.Batch) error {
	return s.update(ctx, "writing the journal of downloads", func(tx *sql.Tx) error {
		if err := s.savePlaces(ctx, tx, b.Places); err != nil {
			return err
		}
		if err := s.saveBookings(ctx, tx, b.Bookings); err != nil {
			return err
		}
		_, err := exec(ctx, tx, `
			INSERT INTO download_journal_mark (id, alive) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET alive = excluded.alive`, millis(b.Alive))
		return err
	})
}

func (s *Store) savePlaces(ctx context.Context, tx *sql.Tx, places []downloads.Place) error {
	rows := make([][14]any, len(places))
	for i := range places {
		p := &places[i]
		rows[i] = [14]any{
			hex.EncodeToString(p.Key[:]), hex.EncodeToString(p.Principal[:]), p.State, p.Class, digit(p.Identified), digit(p.TailOnly), digit(p.Begun),
			millis(p.ArrivedAt), p.Sequence, p.Size, p.Left, p.Start, p.Spans, millis(p.EndsAt),
		}
	}
	return s.saveRows(ctx, tx, rows, len(rows), `
		INSERT INTO download_journal (id, principal, state, class, identified, tail_only, begun, arrival, sequence, size, wanted, start, spans, until)
		SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT), CAST(value ->> 3 AS BIGINT), CAST(value ->> 4 AS BOOLEAN),
			CAST(value ->> 5 AS BOOLEAN), CAST(value ->> 6 AS BOOLEAN), CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT),
			CAST(value ->> 9 AS BIGINT), CAST(value ->> 10 AS BIGINT), CAST(value ->> 11 AS BIGINT), COALESCE(value ->> 12, 'null'),
			CAST(value ->> 13 AS BIGINT)
		FROM `+s.engine.elements+` WHERE true
		ON CONFLICT (id) DO UPDATE SET
			principal = excluded.principal, state = excluded.state, class = excluded.class, identified = excluded.identified,
			tail_only = excluded.tail_only, begun = excluded.begun, arrival = excluded.arrival, sequence = excluded.sequence,
			size = excluded.size, wanted = excluded.wanted, start = excluded.start, spans = excluded.spans, until = excluded.until`)
}

func (s *Store) saveBookings(ctx context.Context, tx *sql.Tx, bookings []downloads.BookingRow) error {
	rows := make([][3]any, len(bookings))
	for i, b := range bookings {
		rows[i] = [3]any{hex.EncodeToString(b.Key[:]), b.Body, millis(b.EndsAt)}
	}
	return s.saveRows(ctx, tx, rows, len(rows), `
		INSERT INTO download_bookings (id, body, until)
		SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT) FROM `+s.engine.elements+` WHERE true
		ON CONFLICT (id) DO UPDATE SET body = excluded.body, until = excluded.until`)
}

// saveRows hands all rows over as one JSON array: one statement and one turn to the database, however many there are.
func (s *Store) saveRows(ctx context.Context, tx *sql.Tx, rows any, n int, query string) error {
	if n == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err == nil {
		_, err = exec(ctx, tx, query, string(text))
	}
	return err
}

// digit is a boolean that both engines cast alike.
func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// LoadJournal is downloads.Journal's.
func (s *Store) LoadJournal(ctx context.Context) (b downloads.Batch, err error) {
	var alive int64
	err = s.read.QueryRowContext(ctx, `SELECT alive FROM download_journal_mark WHERE id = 1`).Scan(&alive)
	if errors.Is(err, sql.ErrNoRows) {
		return b, nil
	}
	if err == nil {
		b.Alive = instant(alive)
		b.Places, err = list(ctx, s.read, scanPlace, `
			SELECT id, principal, state, class, identified, tail_only, begun, arrival, sequence, size, wanted, start, spans, until
			FROM download_journal`)
	}
	if err == nil {
		b.Bookings, err = list(ctx, s.read, scanBooking, `SELECT id, body, until FROM download_bookings`)
	}
	return b, s.fail("reading the journal of downloads", err)
}

func scanPlace(r row) (p downloads.Place, err error) {
	var key, principal, spans string
	var state, kind, arrival, sequence, until int64
	err = r.Scan(&key, &principal, &state, &kind, &p.Identified, &p.TailOnly, &p.Begun, &arrival, &sequence, &p.Size, &p.Left, &p.Start, &spans, &until)
	if err != nil {
		return p, err
	}
	p.State, p.Class, p.Sequence = session.SavedState(state), class.Class(kind), uint32(sequence)
	p.ArrivedAt, p.EndsAt = instant(arrival), instant(until)
	return p, errors.Join(parseKey(&p.Key, key), parseKey(&p.Principal, principal), json.Unmarshal([]byte(spans), &p.Spans))
}

func scanBooking(r row) (b downloads.BookingRow, err error) {
	var key string
	var until int64
	if err = r.Scan(&key, &b.Body, &until); err != nil {
		return b, err
	}
	b.EndsAt = instant(until)
	return b, parseKey(&b.Key, key)
}

func parseKey(k *session.Key, text string) error {
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) != len(k) {
		err = errors.New("a key of another length")
	}
	copy(k[:], raw)
	return err
}

// SweepJournal is downloads.Journal's.
func (s *Store) SweepJournal(ctx context.Context, before time.Time) error {
	return s.update(ctx, "sweeping the journal of downloads", func(tx *sql.Tx) error {
		for _, table := range []string{"download_journal", "download_bookings"} {
			if _, err := exec(ctx, tx, `DELETE FROM `+table+` WHERE until > 0 AND until < $1`, millis(before)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClearJournal is downloads.Journal's.
func (s *Store) ClearJournal(ctx context.Context) error {
	return s.update(ctx, "clearing the journal of downloads", func(tx *sql.Tx) error {
		for _, table := range []string{"download_journal", "download_bookings", "download_journal_mark"} {
			if _, err := exec(ctx, tx, `DELETE FROM `+table); err != nil {
				return err
			}
		}
		return nil
	})
}
