package sdk

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/roadstead/roadstead/api"
)

// scheduleURL is the address of a schedule of a tenant; an empty tenant is the caller's own.
func (c *Client) scheduleURL(tenant, name, rest string) string {
	return c.at(apiRoot+"schedules/"+url.PathEscape(name)+rest, inTenant(tenant))
}

// Schedules lists a tenant's schedules by name; an empty tenant is the caller's own, here and below.
func (c *Client) Schedules(ctx context.Context, tenant string) iter.Seq2[api.Schedule, error] {
	return pages[api.Schedule](ctx, c, "schedules", inTenant(tenant))
}

// Schedule is one schedule and its next fire.
func (c *Client) Schedule(ctx context.Context, tenant, name string) (out api.Schedule, err error) {
	err = c.call(ctx, http.MethodGet, c.scheduleURL(tenant, name, ""), nil, &out)
	return out, err
}

// PutSchedule makes a schedule (expected revision 0) or replaces its plan; at another revision the error's Code is
// revision_mismatch. Nothing fires on the change.
func (c *Client) PutSchedule(ctx context.Context, tenant, name string, change api.ScheduleChange) (out api.Schedule, err error) {
	err = c.call(ctx, http.MethodPut, c.scheduleURL(tenant, name, ""), change, &out)
	return out, err
}

// DeleteSchedule removes a schedule at a revision, with the list of its fires; Runs that it made stay.
func (c *Client) DeleteSchedule(ctx context.Context, tenant, name string, revision int64) error {
	query := inTenant(tenant)
	if query == nil {
		query = url.Values{}
	}
	query.Set("revision", strconv.FormatInt(revision, 10))
	return c.call(ctx, http.MethodDelete, c.at(apiRoot+"schedules/"+url.PathEscape(name), query), nil, nil)
}

// PauseSchedule stops a schedule.
func (c *Client) PauseSchedule(ctx context.Context, tenant, name string) (out api.Schedule, err error) {
	err = c.call(ctx, http.MethodPost, c.scheduleURL(tenant, name, "/pause"), nil, &out)
	return out, err
}

// ResumeSchedule lets a schedule go on from now; what was due in between is not caught up.
func (c *Client) ResumeSchedule(ctx context.Context, tenant, name string) (out api.Schedule, err error) {
	err = c.call(ctx, http.MethodPost, c.scheduleURL(tenant, name, "/resume"), nil, &out)
	return out, err
}

// PreviewSchedule is the load of the plan's pool if it were stored under the name; nothing is stored.
func (c *Client) PreviewSchedule(ctx context.Context, tenant, name string, preview api.SchedulePreview) (out api.LoadCurve, err error) {
	err = c.call(ctx, http.MethodPost, c.scheduleURL(tenant, name, "/preview"), preview, &out)
	return out, err
}

// ScheduleFires lists what a schedule fired, latest first.
func (c *Client) ScheduleFires(ctx context.Context, tenant, name string) iter.Seq2[api.ScheduleFire, error] {
	return pages[api.ScheduleFire](ctx, c, "schedules/"+url.PathEscape(name)+"/fires", inTenant(tenant))
}
