package artifacts

import (
	"context"
	"log/slog"
	"time"
)

const sweepBatch = 100

// Run drops expired uploads at start and then now and then, until ctx ends.
func (s *Service) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(s.cfg.SweepEvery)
	defer tick.Stop()
	for {
		if n, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Warn("sweep of expired uploads failed, will be repeated", "error", err)
		} else if n > 0 {
			log.Info("dropped expired uploads", "count", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep drops expired uploads and bytes whose row is gone, and says how many.
func (s *Service) Sweep(ctx context.Context) (dropped int, err error) {
	now := s.now()
	for {
		ids, err := s.records.ExpiredUploads(ctx, now, sweepBatch)
		if err != nil {
			return dropped, err
		}
		for _, id := range ids {
			if err := s.drop(ctx, id); err != nil {
				return dropped, err
			}
			dropped++
		}
		if len(ids) < sweepBatch {
			break
		}
	}
	// Each append extends the row's life and touches the bytes, so bytes twice as old have no row that counts.
	strays, err := s.blobs.Sweep(ctx, now.Add(-2*s.cfg.UploadLife))
	return dropped + strays, err
}
