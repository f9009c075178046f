package demo

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/sdk"
)

const repository = "demo"

// member is one client of the fleet before it has an account.
type member struct {
	name  string
	class class.Class
}

// members makes the fleet: of eight clients one is a person, two are CI jobs, three are sites and two are mirrors.
func members(n int) []member {
	mix := [8]class.Class{class.Bulk, class.Release, class.Background, class.Interactive, class.Bulk, class.Release, class.Bulk, class.Background}
	people := []string{"ana", "bela", "chen", "dina", "emil", "fatou", "goran", "hana"}
	var counts [class.Count]int
	all := make([]member, n)
	for i := range all {
		c := mix[i%len(mix)]
		counts[c]++
		k := counts[c]
		all[i] = member{class: c}
		switch c {
		case class.Interactive:
			if all[i].name = people[(k-1)%len(people)]; k > len(people) {
				all[i].name += fmt.Sprintf("-%d", (k-1)/len(people)+1)
			}
		case class.Release:
			all[i].name = fmt.Sprintf("ci-%02d", k)
		case class.Bulk:
			all[i].name = fmt.Sprintf("site-%02d", k)
		case class.Background:
			all[i].name = fmt.Sprintf("mirror-%d", k)
		}
	}
	return all
}

// fleet is the clients with their accounts, ready to go.
type fleet struct {
	plan    plan
	address string // of the file
	digest  string // that every client insists on
	dir     string // for the bytes that come, which are removed at once
	members []member
	clients []*sdk.Client   // by member
	delays  []time.Duration // before the first request, by member
	board   *board
}

// prepare stores the file and makes the accounts, all through the public API.
func (p plan) prepare(ctx context.Context, s *server, dir string, d *display) (*fleet, error) {
	operator, err := sdk.New(sdk.Config{URL: s.url, Key: s.key})
	if err != nil {
		return nil, err
	}
	defer operator.Close()
	if _, err := operator.CreateRepository(ctx, repository); err != nil {
		return nil, fmt.Errorf("make the repository: %w", err)
	}
	stored, err := p.store(ctx, operator, dir, d)
	if err != nil {
		return nil, err
	}
	f := &fleet{plan: p, address: operator.FileURL(repository, p.name), digest: stored.Digest, dir: dir, members: members(p.Clients)}
	if err := f.enrol(ctx, operator, d); err != nil {
		f.close()
		return nil, err
	}
	draw := rand.New(rand.NewPCG(p.Seed, 2))
	for range f.members {
		f.delays = append(f.delays, time.Duration(draw.Int64N(int64(spread))))
	}
	f.board = newBoard(f.members, p.Size)
	return f, nil
}

// spread is the span over which the fleet's first requests come: a fleet that hears of a release.
const spread = 500 * time.Millisecond

// store takes the file, or makes one, and uploads it.
func (p plan) store(ctx context.Context, operator *sdk.Client, dir string, d *display) (sdk.Stored, error) {
	file := p.File
	if file == "" {
		file = filepath.Join(dir, p.name)
		if err := p.fill(ctx, file, d); err != nil {
			return sdk.Stored{}, fmt.Errorf("make the file: %w", err)
		}
		defer func() { _ = os.Remove(file) }() // the folder goes in any case
	}
	stored, err := operator.Upload(ctx, sdk.Upload{File: file, Repository: repository, Path: p.name, Events: func(e sdk.Event) {
		switch e := e.(type) {
		case sdk.Hashing:
			d.doing("file: computing the SHA-256, %d %%", e.Offset*100/max(e.Size, 1))
		case sdk.Progress:
			d.doing("file: storing, %s of %s", amount(float64(e.Offset)), amount(float64(e.Size)))
		}
	}})
	if err != nil {
		return stored, fmt.Errorf("store the file: %w", err)
	}
	d.done("file of %s stored, %s…", amount(float64(stored.Size)), stored.Digest[:min(len(stored.Digest), 19)])
	return stored, nil
}

// fill writes random bytes, which nothing on the way can make smaller; the same seed gives the same bytes.
func (p plan) fill(ctx context.Context, name string, d *display) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], p.Seed)
	source, w := rand.NewChaCha8(seed), bufio.NewWriterSize(f, 1<<20)
	for left := p.Size; left > 0 && err == nil; {
		n := min(left, 4<<20)
		_, err = io.CopyN(w, source, n)
		if left -= n; ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		d.doing("file: writing, %s of %s", amount(float64(p.Size-left)), amount(float64(p.Size)))
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// enrol makes an account, a key and a grant for each member.
func (f *fleet) enrol(ctx context.Context, operator *sdk.Client, d *display) error {
	people := 0
	for i, m := range f.members {
		d.doing("accounts: %d of %d", i, len(f.members))
		create := operator.CreateServiceAccount
		if m.class == class.Interactive {
			create = operator.CreateUser
			people++
		}
		account, err := create(ctx, api.NewAccount{Name: m.name})
		if err != nil {
			return fmt.Errorf("make the account %s: %w", m.name, err)
		}
		key, err := operator.CreateKey(ctx, account.ID, "demo", time.Hour)
		if err != nil {
			return fmt.Errorf("make a key for %s: %w", m.name, err)
		}
		if err := operator.Grant(ctx, repository, account.ID, "read"); err != nil {
			return fmt.Errorf("let %s read: %w", m.name, err)
		}
		client, err := sdk.New(sdk.Config{URL: operator.URL(), Key: key.Secret, UserAgent: "roadstead-demo"})
		if err != nil {
			return err
		}
		f.clients = append(f.clients, client)
	}
	d.done("accounts with a key each: %s, %s", count(people, "person", "people"), count(len(f.members)-people, "service account", "service accounts"))
	return nil
}

// run lets all clients download and shows them until the last has ended.
func (f *fleet) run(ctx context.Context, d *display) error {
	work, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	first := slices.Min(f.delays)
	for i := range f.clients {
		all.Go(func() { f.download(work, i, f.delays[i]-first) })
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	d.watch(f.board, float64(f.plan.Rate), ended)
	stop() // a screen that can't be written to ends the run early
	<-ended
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.err
}

// download is one client's whole life.
func (f *fleet) download(ctx context.Context, i int, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	m := f.members[i]
	file := filepath.Join(f.dir, m.name)
	f.board.asks(i)
	result, err := f.clients[i].Download(ctx, sdk.Download{
		URL: f.address, File: file, Class: m.class.String(), Digest: f.digest,
		Events: func(e sdk.Event) { f.board.event(i, e) },
	})
	if err == nil && !result.Verified {
		err = errors.New("the bytes were not verified")
	}
	if rerr := os.Remove(file); err == nil {
		err = rerr
	}
	if ctx.Err() == nil { // one that was stopped did not fail
		f.board.ends(i, err)
	}
}

// close drops the connections.
func (f *fleet) close() {
	for _, c := range f.clients {
		c.Close()
	}
}
