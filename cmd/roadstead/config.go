package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	jsonapi "github.com/roadstead/roadstead/internal/serve/api"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	printing := &cobra.Command{
		Use: "print", Short: "Print each setting with its value and where that comes from", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, all, err := load(cmd.Flags())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
			for _, s := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, s.Source) // Flush reports
			}
			return w.Flush()
		},
	}
	settingFlags(printing.Flags())
	cmd.AddCommand(printing)
	return cmd
}

func openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document of the API", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, err := jsonapi.Document()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", document)
			return err
		},
	}
}
