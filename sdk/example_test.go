package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/roadstead/roadstead/sdk"
)

// A download waits its turn as long as the deadline allows, and may be called again after any error: it goes on where
// it stood.
func ExampleClient_Download() {
	client, err := sdk.New(sdk.Config{URL: "https://store.example", Key: "rsk_..."})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	result, err := client.Download(context.Background(), sdk.Download{
		URL:      client.FileURL("fleet", "firmware-7.2.img"),
		File:     "/srv/firmware-7.2.img",
		Class:    "bulk",
		NotAfter: time.Now().Add(8 * time.Hour),
		Events: func(e sdk.Event) {
			switch e := e.(type) {
			case sdk.Waiting:
				fmt.Println("place", e.Position, "starts about", e.StartsAt)
			case sdk.Progress:
				fmt.Println(e.Offset, "of", e.Size)
			}
		},
	})
	switch {
	case errors.Is(err, sdk.ErrQueueDeadline):
		fmt.Println("not tonight")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(result.File, result.Digest)
	}
}
