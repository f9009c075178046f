package settings

import (
	"context"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/forerun"
)

// Stored is the one record as the store keeps it.
type Stored struct {
	Revision int64  // 0 before the first change
	Record   string // JSON, the changed fields only
	At       time.Time
	By       string // account id
	ByName   string
}

// Change is one revision of the record.
type Change struct {
	Stored
	Fields []string // what it set or took back
}

// Store keeps the record and its history. All block on the database.
type Store interface {
	// DownloadSettings is the record in force; revision 0 and {} when there is none.
	DownloadSettings(ctx context.Context) (Stored, error)
	// ChangeDownloadSettings replaces the record of revision next.Revision-1, in one statement, and writes history and
	// audit in the same transaction; any other stored revision is fault revision_mismatch.
	ChangeDownloadSettings(ctx context.Context, next Stored, fields []string, e audit.Entry) error
	// DownloadSettingsHistory lists revisions, newest first, below before unless that is 0.
	DownloadSettingsHistory(ctx context.Context, before int64, limit int) ([]Change, error)
}

// Queue runs on the settings; *downloads.Service is one. Neither method blocks for long.
type Queue interface {
	// Configure applies settings at once, or refuses them as a whole.
	Configure(s downloads.Settings) error
	// Snapshot is the queue as it stands, with at most so many of those who wait.
	Snapshot(most int) forerun.Queue
}
