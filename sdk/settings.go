package sdk

import (
	"context"
	"iter"
	"net/http"

	"github.com/roadstead/roadstead/api"
)

const settingsPath = "system/downloads/settings"

// DownloadSettings is what is stored of the download queue's settings, and what runs (operators only, D-9).
func (c *Client) DownloadSettings(ctx context.Context) (out api.DownloadSettingsState, err error) {
	err = c.call(ctx, http.MethodGet, c.at(apiRoot+settingsPath, nil), nil, &out)
	return out, err
}

// ChangeDownloadSettings replaces the record of settings if it still is at the expected revision, and they run at once;
// otherwise the error's Code is revision_mismatch. A dry run stores nothing and answers what would change (operators
// only, D-9.5).
func (c *Client) ChangeDownloadSettings(ctx context.Context, change api.DownloadSettingsChange) (out api.DownloadSettingsState, err error) {
	err = c.call(ctx, http.MethodPut, c.at(apiRoot+settingsPath, nil), change, &out)
	return out, err
}

// DownloadSettingsHistory lists the revisions of the settings, newest first (operators only).
func (c *Client) DownloadSettingsHistory(ctx context.Context) iter.Seq2[api.DownloadSettingsRevision, error] {
	return pages[api.DownloadSettingsRevision](ctx, c, settingsPath+"/history", nil)
}
