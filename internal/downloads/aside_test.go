package downloads

import (
	"context"
	"testing"
	"time"

	"github.com/roadstead/roadstead/internal/governor"
)

// A reader under the minimum rate is steered aside in mid-response, and who is held at the door takes its seat; one
// that the governor holds back keeps it (minimum rate).
func TestSlowReaderMovesAside(t *testing.T) {
	run(t, 1, &memory{}, 0, func(ctx context.Context, s *Service) {
		next := s.conf.Settings
		next.Policy.MinRate = 1 << 20
		if err := s.Configure(next); err != nil {
			t.Fatal(err)
		}
		slow := mustServe(t, s, ctx, whole("ann", "a"))
		got := make(chan *Pass)
		go func() {
			tool := whole("bob", "")
			for {
				if p, err := s.Admit(ctx, tool); err == nil {
					got <- p
					return
				}
			}
		}()
		for range 60 {
			<-time.After(time.Second)
			if l := slow.Sent(1000, time.Second); l.Aside {
				t.Fatal("moved aside although the governor held it back")
			}
		}
		for second := 1; !slow.Sent(1000, 0).Aside; second++ {
			if second > 21 {
				t.Fatal("not moved aside")
			}
			<-time.After(time.Second)
		}
		other := <-got
		if l := other.Lane(); l.Aside {
			t.Error("the next one begins aside")
		}
		again := mustServe(t, s, ctx, whole("ann", "a"))
		if again.Lane() != (governor.Lane{Aside: true}) {
			t.Errorf("the next range of a session aside begins on the lane %+v", again.Lane())
		}
		other.Close(0, size, true)
		again.Close(0, 0, false)
		slow.Close(0, size, true)
		if c := s.machine.Counts().Classes[0]; c.Aside != 0 || c.Active != 0 {
			t.Errorf("counts %+v when all are through", c)
		}
	})
}
