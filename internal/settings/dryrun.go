package settings

import (
	"context"
	"fmt"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/forerun"
)

// Bounds of a forecast: so many waiting sessions, and so long for both runs together.
const (
	forecastMost = 20_000
	forecastTime = 2 * time.Second
)

// noticed is how much later or earlier a start must be to count as such.
const noticed = time.Second

// dryRun answers what a change would make run, and what it would mean for those who wait; it stores nothing.
func (s *Service) dryRun(ctx context.Context, state api.DownloadSettingsState, next downloads.Settings, c api.DownloadSettingsChange) (api.DownloadSettingsState, error) {
	if !s.playing.TryLock() {
		return state, fault.Later(fault.Busy, "", forecastTime, "another dry run is playing the queue; ask again in a few seconds")
	}
	defer s.playing.Unlock()
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	f, err := s.forecast(ctx, running, next)
	if err != nil {
		return state, err
	}
	state.DryRun, state.Forecast = true, &f
	state.Settings, state.Effective, state.Admission = c.Settings, wire(next, c.Settings.Windows), next.Admission()
	return state, nil
}

// forecast plays the queue of now under both settings.
func (s *Service) forecast(ctx context.Context, running, next downloads.Settings) (api.SettingsForecast, error) {
	q := s.queue.Snapshot(forecastMost)
	out := api.SettingsForecast{Sessions: len(q.Waiting), Classes: []api.ForecastClass{}}
	if q.Rate == 0 {
		out.Reason = "the rate of the link is not known yet: nobody downloads, and no bandwidth is set"
		return out, nil
	}
	wall := s.clock.Wall()
	before, after, err := playBoth(ctx, q, running.Rules(q.Now, wall), next.Rules(q.Now, wall))
	if err != nil {
		return out, err
	}
	out.Known = true
	switch {
	case q.More > 0:
		out.Truncated, out.Reason = true, fmt.Sprintf("%d more wait than the first %d, which were played", q.More, len(q.Waiting))
	case !before.Whole || !after.Whole:
		out.Truncated = true
		out.Reason = "the queue did not come to its end within two seconds of computing, or somebody waits for hours that do not come"
	}
	out.Before, out.After = drain(q.Now, before), drain(q.Now, after)
	out.Classes = compare(q, before.Fates, after.Fates)
	return out, nil
}

// playBoth gives each run half of the time, the second what the first left.
func playBoth(ctx context.Context, q forerun.Queue, a, b forerun.Rules) (before, after forerun.Result, err error) {
	all, cancel := context.WithTimeout(ctx, forecastTime)
	defer cancel()
	half, cancel := context.WithTimeout(all, forecastTime/2)
	defer cancel()
	if before, err = forerun.Play(half, q, a); err != nil {
		return before, after, err
	}
	if after, err = forerun.Play(all, q, b); err != nil {
		return before, after, err
	}
	return before, after, ctx.Err()
}

func drain(now clock.Mono, r forerun.Result) api.ForecastDrain {
	return api.ForecastDrain{DrainSeconds: r.Drained.Sub(now).Seconds(), FinishSeconds: r.Done.Sub(now).Seconds()}
}

// compare sums up by class the sessions that both runs brought to a start.
func compare(q forerun.Queue, before, after []forerun.Fate) []api.ForecastClass {
	var all [class.Count]api.ForecastClass
	var sums [class.Count][2]waits
	for i, saved := range q.Waiting {
		c, a, b := &all[saved.Class], before[i], after[i]
		c.Waiting++
		if !a.Started || !b.Started {
			continue
		}
		sums[saved.Class][0].add(saved.Arrival, a)
		sums[saved.Class][1].add(saved.Arrival, b)
		switch moved := b.Start.Sub(a.Start); {
		case moved > noticed:
			c.Later++
		case moved < -noticed:
			c.Earlier++
		}
	}
	out := []api.ForecastClass{}
	for i, c := range all {
		if c.Waiting > 0 {
			c.Class, c.Before, c.After = class.Class(i).String(), sums[i][0].mean(), sums[i][1].mean()
			out = append(out, c)
		}
	}
	return out
}

// waits adds up the waits of a class, in seconds.
type waits struct {
	started, finished   int
	start, most, finish float64
}

func (w *waits) add(arrival clock.Mono, f forerun.Fate) {
	w.started++
	waited := f.Start.Sub(arrival).Seconds()
	w.start += waited
	w.most = max(w.most, waited)
	if f.Finished {
		w.finished++
		w.finish += f.Finish.Sub(arrival).Seconds()
	}
}

func (w waits) mean() api.ForecastWaits {
	return api.ForecastWaits{
		MeanWaitSeconds: w.start / float64(max(w.started, 1)), MaxWaitSeconds: w.most,
		MeanFinishSeconds: w.finish / float64(max(w.finished, 1)),
	}
}
