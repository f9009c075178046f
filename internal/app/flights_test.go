package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFlightsWaitForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flights
		if err := f.wait(t.Context()); err != nil {
			t.Error("nothing in flight, yet it waited")
		}
		f.add(1)
		f.add(1)
		done := make(chan error)
		go func() { done <- f.wait(t.Context()) }()
		synctest.Wait()
		f.add(-1)
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("one is still in flight, yet: %v", err)
		default:
		}
		f.add(-1)
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.add(1)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.wait(short); err == nil {
			t.Error("the limit did not hold")
		}
		f.add(-1)
	})
}
