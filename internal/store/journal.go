package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
)

// journalChunk is how many rows one statement writes: few enough for the parameters of either engine.
const journalChunk = 64

// SaveJournal is downloads.Journal's.
func (s *Store) SaveJournal(ctx context.Context, b downloads.Batch) error {
	return s.update(ctx, "writing the journal of downloads", func(tx *sql.Tx) error {
		for rows := range slices.Chunk(b.Places, journalChunk) {
			if err := savePlaces(ctx, tx, rows); err != nil {
				return err
			}
		}
		for rows := range slices.Chunk(b.Bookings, journalChunk) {
			if err := saveBookings(ctx, tx, rows); err != nil {
				return err
			}
		}
		_, err := exec(ctx, tx, `
			INSERT INTO download_journal_mark (id, alive) VALUES (1, $1)
			ON CONFLICT (id) DO UPDATE SET alive = excluded.alive`, millis(b.Alive))
		return err
	})
}

func savePlaces(ctx context.Context, tx *sql.Tx, rows []downloads.Place) error {
	args := make([]any, 0, len(rows)*14)
	for i := range rows {
		r := &rows[i]
		spans, err := json.Marshal(r.Spans)
		if err != nil {
			return err
		}
		args = append(args, hex.EncodeToString(r.Key[:]), hex.EncodeToString(r.Principal[:]), int64(r.State), int64(r.Class),
			r.Identified, r.TailOnly, r.Begun, millis(r.ArrivedAt), int64(r.Sequence), r.Size, r.Left, r.Start, string(spans), millis(r.EndsAt))
	}
	_, err := exec(ctx, tx, `
		INSERT INTO download_journal (id, principal, state, class, identified, tail_only, begun, arrival, sequence, size, wanted, start, spans, until)
		VALUES `+tuples(len(rows), 14)+`
		ON CONFLICT (id) DO UPDATE SET
			principal = excluded.principal, state = excluded.state, class = excluded.class, identified = excluded.identified,
			tail_only = excluded.tail_only, begun = excluded.begun, arrival = excluded.arrival, sequence = excluded.sequence,
			size = excluded.size, wanted = excluded.wanted, start = excluded.start, spans = excluded.spans, until = excluded.until`, args...)
	return err
}

func saveBookings(ctx context.Context, tx *sql.Tx, rows []downloads.BookingRow) error {
	args := make([]any, 0, len(rows)*3)
	for _, r := range rows {
		args = append(args, hex.EncodeToString(r.Key[:]), r.Body, millis(r.EndsAt))
	}
	_, err := exec(ctx, tx, `
		INSERT INTO download_bookings (id, body, until) VALUES `+tuples(len(rows), 3)+`
		ON CONFLICT (id) DO UPDATE SET body = excluded.body, until = excluded.until`, args...)
	return err
}

// tuples is a VALUES list of numbered parameters.
func tuples(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	b.WriteByte(')')
	return b.String()
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
