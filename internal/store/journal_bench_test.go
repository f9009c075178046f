package store_test

import (
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/store"
)

// BenchmarkSaveJournal is one transaction of the journal: 4,096 new places.
func BenchmarkSaveJournal(b *testing.B) {
	s, err := store.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "x.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	n := uint64(0)
	batch := downloads.Batch{Alive: time.Now(), Places: make([]downloads.Place, 4096)}
	for b.Loop() {
		for i := range batch.Places {
			n++
			binary.BigEndian.PutUint64(batch.Places[i].Key[:], n*0x9e3779b97f4a7c15)
			batch.Places[i].State, batch.Places[i].ArrivedAt = session.SavedWaiting, batch.Alive
		}
		if err := s.SaveJournal(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}
