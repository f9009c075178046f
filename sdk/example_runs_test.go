package sdk_test

import (
	"context"
	"fmt"
	"log"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/sdk"
)

// A Run is submitted, followed to its end whatever happens to the connection, and its results are fetched.
func ExampleClient_Submit() {
	client, err := sdk.New(sdk.Config{URL: "https://store.example", Key: "rsk_..."})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	made, err := client.Submit(ctx, api.NewRun{
		Package: "prices-report",
		Inputs:  map[string]api.Input{"prices": {File: "data/prices.csv"}},
	}, sdk.Submission{})
	if err != nil {
		log.Fatal(err)
	}
	id := made.Runs[0].ID
	for m, err := range client.FollowRun(ctx, id, sdk.Follow{}) {
		switch {
		case err != nil:
			log.Fatal(err)
		case m.Log != nil:
			fmt.Println(m.Log.Text)
		case m.Event != nil:
			fmt.Println(m.Event.At, m.Event.Kind)
		}
	}
	run, err := client.Run(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range run.Results {
		if _, err := client.DownloadResult(ctx, id, r.Name, sdk.Download{File: r.Name, Digest: r.Digest}); err != nil {
			log.Fatal(err)
		}
	}
}
