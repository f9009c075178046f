package settings

import (
	"context"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/downloads"
)

// dryRun answers what a change would make run, and stores nothing.
func (s *Service) dryRun(_ context.Context, before api.DownloadSettingsState, next downloads.Settings, c api.DownloadSettingsChange, changes []api.SettingChange) (api.DownloadSettingsState, error) {
	out := before
	out.DryRun, out.Changes = true, changes
	out.Settings, out.Effective, out.Admission = c.Settings, wire(next, c.Settings.Windows), next.Admission()
	return out, nil
}
