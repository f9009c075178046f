package storetest

import (
	"slices"
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/settings"
	"github.com/roadstead/roadstead/internal/store"
)

func record(n int64, text string) settings.Stored {
	return settings.Stored{Revision: n, Record: text, At: at(), By: "an-account", ByName: "ann"}
}

// downloadSettings: there is none at first; a change names the revision it follows, and none other is made (D-9.5).
func downloadSettings(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	got, err := a.DownloadSettings(ctx)
	ok(t, err)
	equal(t, got, settings.Stored{Record: "{}"})
	refused(t, a.ChangeDownloadSettings(ctx, record(2, "{}"), nil, entry()), fault.RevisionMismatch)

	ok(t, a.ChangeDownloadSettings(ctx, record(1, `{"sessions":2}`), []string{"sessions"}, entry()))
	got, err = b.DownloadSettings(ctx)
	ok(t, err)
	equal(t, got, record(1, `{"sessions":2}`))
	for _, n := range []int64{1, 3} {
		refused(t, b.ChangeDownloadSettings(ctx, record(n, `{}`), nil, entry()), fault.RevisionMismatch)
	}
	ok(t, b.ChangeDownloadSettings(ctx, record(2, `{}`), []string{"sessions", "reserve"}, entry()))
	ok(t, a.ChangeDownloadSettings(ctx, record(3, `{}`), nil, entry()))

	page, err := a.DownloadSettingsHistory(ctx, 0, 2)
	ok(t, err)
	equal(t, len(page), 2)
	equal(t, page[0].Stored, record(3, `{}`))
	equal(t, len(page[0].Fields), 0)
	equal(t, slices.Equal(page[1].Fields, []string{"sessions", "reserve"}), true)
	page, err = a.DownloadSettingsHistory(ctx, 2, 5)
	ok(t, err)
	equal(t, len(page), 1)
	equal(t, page[0].Revision, int64(1))
}

// downloadSettingsRace: of two changes of one revision one is stored, with its history and its line in the audit; the
// other is told so (D-9.5).
func downloadSettingsRace(t *testing.T, a, b *store.Store) {
	ctx := t.Context()
	before, err := a.ListAudit(ctx, "", 100)
	ok(t, err)
	const rounds = 10
	records := []string{`{"sessions":2}`, `{"sessions":3}`}
	for n := int64(1); n <= rounds; n++ {
		errs := together(a, b, func(i int, s *store.Store) error {
			return s.ChangeDownloadSettings(ctx, record(n, records[i]), []string{"sessions"}, entry())
		})
		winner := oneWins(t, errs, fault.RevisionMismatch)
		got, err := b.DownloadSettings(ctx)
		ok(t, err)
		equal(t, got, record(n, records[winner]))
	}
	history, err := a.DownloadSettingsHistory(ctx, 0, 100)
	ok(t, err)
	equal(t, len(history), rounds)
	after, err := b.ListAudit(ctx, "", 100)
	ok(t, err)
	equal(t, len(after)-len(before), rounds)
}
