package sdk

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/roadstead/roadstead/api"
)

// Plan measures what came to a pool and plans slots for it. Its zero query measures the pool named default over a
// day, for a load of 0.7, without a forecast.
func (c *Client) Plan(ctx context.Context, query api.PlanQuery) (out api.Plan, err error) {
	q := url.Values{"forecast": {strconv.FormatBool(query.Forecast)}}
	if query.Pool != "" {
		q.Set("pool", query.Pool)
	}
	if query.WindowSeconds != 0 {
		q.Set("windowSeconds", strconv.FormatInt(query.WindowSeconds, 10))
	}
	if query.TargetLoad != 0 {
		q.Set("targetLoad", strconv.FormatFloat(query.TargetLoad, 'g', -1, 64))
	}
	err = c.call(ctx, http.MethodGet, c.at(apiRoot+"plan", q), nil, &out)
	return out, err
}
