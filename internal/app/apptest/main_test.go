package apptest_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Whatever a server started is gone when it has stopped.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	// The library of resumable uploads lets a timer of each request run out, ten seconds after its end.
	tus := goleak.IgnoreAnyFunction("github.com/tus/tusd/v2/pkg/handler.newDelayedContext.func1")
	if err := goleak.Find(tus); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
