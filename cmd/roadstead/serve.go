package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roadstead/roadstead/internal/app"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server. Each setting comes from its flag, its environment variable, the file given with --config, or its
default, in this order; "roadstead config print" shows them all. TERM or Ctrl-C drains: waiting clients are told to come
back, answers that are on their way may finish within the drain limit. HUP reads the TLS certificate anew.`,
		Example: `  roadstead serve --data ./data
  roadstead serve --data /var/lib/roadstead --listen 0.0.0.0:8443 --tls-cert-file cert.pem --tls-key-file key.pem --bandwidth 40MB`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg)
		},
	}
	settingFlags(cmd.Flags())
	return cmd
}

// settingFlags declares one flag per setting; which were given decides, so their defaults here are empty.
func settingFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "`file` of settings, .json or .toml")
	for _, s := range app.Settings() {
		flags.String(s.Flag(), "", s.Usage+" ("+s.Env()+")")
	}
}

func load(flags *pflag.FlagSet) (app.Config, []app.Sourced, error) {
	given := map[string]string{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return app.Load(app.Inputs{Flags: given, Lookup: os.LookupEnv, File: given["config"]})
}

func serve(ctx context.Context, cfg app.Config) (err error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log)
	a, err := app.Open(ctx, cfg, app.Options{Version: version, Log: log, Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				a.Reload()
			}
		}
	}()
	return a.Run(ctx)
}
