package api

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/settings"
)

// Settings keeps what operators change of the download queue (D-9). Anybody else is refused with forbidden.
type Settings interface {
	State(ctx context.Context, actor identity.Principal) (api.DownloadSettingsState, error)
	// Change is refused with revision_mismatch when the record is not at the expected revision any more.
	Change(ctx context.Context, actor identity.Principal, c api.DownloadSettingsChange) (api.DownloadSettingsState, error)
	History(ctx context.Context, actor identity.Principal, before int64, limit int) (page []settings.Change, older int64, err error)
}

func (o *operations) settings(a huma.API) {
	const path = "/system/downloads/settings"
	do(a, route{"GET", path, "downloadSettings", "The settings of the download queue: what is stored, what runs, and why if those differ; for operators"},
		func(ctx context.Context, caller identity.Principal, _ *none) (api.DownloadSettingsState, error) {
			return o.Settings.State(ctx, caller)
		})
	do(a, route{"PUT", path, "changeDownloadSettings", "Replace the settings of the download queue at once, or with dryRun say what that would do"},
		func(ctx context.Context, caller identity.Principal, in *input[api.DownloadSettingsChange]) (api.DownloadSettingsState, error) {
			out, err := o.Settings.Change(ctx, caller, in.Body)
			return out, inSettings(err)
		})
	do(a, route{"GET", path + "/history", "downloadSettingsHistory", "Every revision of the settings, newest first"},
		func(ctx context.Context, caller identity.Principal, in *PageQuery) (api.Page[api.DownloadSettingsRevision], error) {
			before, err := beforeRevision(in.After)
			if err != nil {
				return api.Page[api.DownloadSettingsRevision]{}, err
			}
			items, older, err := o.Settings.History(ctx, caller, before, in.Limit)
			next := ""
			if older > 0 {
				next = strconv.FormatInt(older, 10)
			}
			return paged(items, next, err, wireSettingsChange)
		})
}

// inSettings names a wrong field as it stands in the body, like those that the schema refuses.
func inSettings(err error) error {
	f := fault.From(err)
	if err == nil || f.Code != fault.InvalidInput {
		return err
	}
	named := *f
	named.Details = nil
	for _, d := range f.Details {
		named.Details = append(named.Details, fault.Detail{Field: "settings." + d.Field, Problem: d.Problem})
	}
	return &named
}

// beforeRevision reads the next of a page that lists revisions newest first; 0 for the first page.
func beforeRevision(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Invalid("after", "must be the next of the page before")
	}
	return n, nil
}

func wireSettingsChange(c settings.Change) api.DownloadSettingsRevision {
	record, err := settings.Parse(c.Record)
	if err != nil {
		record = api.DownloadSettings{} // of another version; what it changed is still told
	}
	return api.DownloadSettingsRevision{
		Revision: c.Revision, ChangedAt: c.At, ChangedBy: c.By, ChangedByName: c.ByName,
		Fields: append([]string{}, c.Fields...), Settings: record,
	}
}
