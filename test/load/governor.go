package main

import (
	"context"
	"fmt"
	"sync"
)

// playGovernor runs the fleet over loopback; the server's own governor is the scarce link.
func playGovernor(ctx context.Context, b *bench, s scenario) error {
	listen, err := freePort()
	if err != nil {
		return err
	}
	srv := b.plan(s, listen, []string{fmt.Sprintf("ROADSTEAD_BANDWIDTH=%d", s.rate)})
	defer srv.stop()
	return playFleet(ctx, b, s, srv, loopback, nil)
}

// playFleet starts the server, runs the fleet against it and judges. link is the counter of a link outside the server.
func playFleet(ctx context.Context, b *bench, s scenario, srv *server, source func(int) string, link func(context.Context) (float64, error)) error {
	if err := needCurl(s); err != nil {
		return err
	}
	if err := srv.start(ctx); err != nil {
		return err
	}
	world, err := srv.furnish(ctx, b, s)
	if err != nil {
		return err
	}
	f := &fleet{world: world, scenario: s, dir: b.fast, source: source}
	w := &watch{server: srv, world: world, scenario: s, link: link, say: b.say, finished: f.finished.Load}
	watching, enough := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { w.run(watching) })
	all := f.run(ctx)
	enough()
	background.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return judge(b, s, f.began, all, w)
}
