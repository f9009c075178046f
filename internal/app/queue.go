package app

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/clock"
	"github.com/roadstead/roadstead/internal/core/session"
	"github.com/roadstead/roadstead/internal/downloads"
	"github.com/roadstead/roadstead/internal/governor"
	"github.com/roadstead/roadstead/internal/settings"
	"github.com/roadstead/roadstead/internal/store"
	"github.com/roadstead/roadstead/internal/ticket"
)

// openDownloads makes the download queue, whose tickets are signed with the installation's key (D-8.3).
func (a *App) openDownloads(ctx context.Context, clk clock.Clock) error {
	key, err := a.store.TicketKey(ctx)
	if err != nil {
		return fmt.Errorf("reading the key of queue tickets: %w", err)
	}
	conf := a.cfg.downloads()
	if a.downloads, err = downloads.New(ctx, conf, clk, a.store, ticket.New(key)); err != nil {
		return err
	}
	a.settings, err = settings.New(settings.Config{Environment: conf.Settings, NewID: store.NewID, Log: a.options.Log}, a.store, steered{a.downloads, a.link}, clk)
	if err == nil {
		a.settings.Load(ctx) // what keeps the record from running does not keep the server from it (D-9.3)
	}
	if err == nil && a.cfg.Journal {
		err = a.downloads.Resume(ctx, a.store)
	}
	return err
}

// steered is the queue together with the link, whose shares outside the hours of classes are settings too (D-5.2).
type steered struct {
	*downloads.Service
	link *governor.Governor
}

// Configure implements settings.Queue.
func (s steered) Configure(next downloads.Settings) error {
	if err := s.Service.Configure(next); err != nil {
		return err
	}
	var outside [class.Count]float64
	for c, w := range next.Windows {
		outside[c] = w.Outside
	}
	return s.link.SetOutside(outside)
}

// downloads is the queue's part of the configuration.
func (c Config) downloads() downloads.Config {
	d := downloads.Default(c.Seats())
	d.Policy.Reserve, d.Policy.PerPrincipal, d.Policy.Weights = c.SeatReserve(), c.Share(), c.ClassWeights
	d.Policy.MaxSessions = c.DownloadQueueLimit
	d.Policy.MaxPerPrincipal = min(d.Policy.MaxPerPrincipal, c.DownloadQueueLimit)
	d.Policy.RangesPerSession, d.Policy.Idle, d.Policy.LinkRate = c.RangesPerSession, c.Idle, c.Bandwidth
	d.Policy.Aging, d.Policy.Preempt, d.Policy.PollBudget = c.Aging, c.Preempt, c.PollBudget
	d.Policy.MinRate = c.SeatMinRate()
	d.Shared = c.Strategy == api.StrategyShared
	if c.Strategy == api.StrategySmallestFirst {
		d.Policy.Strategy = session.SmallestFirst
	}
	d.SessionMinBytes, d.Hold, d.HoldLimit = c.SessionMinBytes, c.Hold, c.TransferQueueLimit
	d.Small.Active = c.MaxDownloads
	d.Small.ActivePerPrincipal = min(d.Small.ActivePerPrincipal, c.MaxDownloads)
	d.Small.Waiting = c.TransferQueueLimit
	d.Small.WaitingPerPrincipal = min(d.Small.WaitingPerPrincipal, c.TransferQueueLimit)
	d.Seed = rand.Uint64() // spreads check times; nothing secret hangs on it
	return d
}
