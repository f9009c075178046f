package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// completions tells the shell which words can follow. What only the server knows is not guessed: no file of this machine
// stands for it.
func completions(root *cobra.Command) {
	classes := []string{"interactive", "release", "bulk", "background"}
	for cmd := range commands(root) {
		classes := classes
		switch cmd.CommandPath() {
		case "roadctl run":
			classes = []string{"interactive", "background", "periodic", "build"} // of Runs, not of downloads
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		case "roadctl upload", "roadctl man", "roadctl packages publish": // files and folders
		case "roadctl repo grant":
			cmd.ValidArgsFunction = word(2, "read", "write", "admin")
		case "roadctl account set-role":
			cmd.ValidArgsFunction = word(1, "member", "admin")
		case "roadctl account set-class":
			cmd.ValidArgsFunction = word(1, classes...)
		case "roadctl settings reset":
			cmd.ValidArgsFunction = cobra.FixedCompletions(settingKeys(), cobra.ShellCompDirectiveNoFileComp)
		case "roadctl settings set":
			cmd.ValidArgsFunction = cobra.FixedCompletions(assignments(settingKeys()), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		case "roadctl pools set":
			cmd.ValidArgsFunction = cobra.FixedCompletions(assignments(policyKeys()), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
		default:
			if cmd.ValidArgsFunction == nil {
				cmd.ValidArgsFunction = cobra.NoFileCompletions
			}
		}
		choices(cmd, "class", classes)
		choices(cmd, "state", []string{"queued", "active", "succeeded", "failed", "interrupted", "cancelled", "expired"})
		choices(cmd, "key-policy", []string{"queue", "replace", "skip"})
		choices(cmd, "overlap", []string{"skip", "queue", "replace", "allow"})
		choices(cmd, "catch-up", []string{"none", "last", "all"})
		choices(cmd, "refused", []string{"drop", "retry"})
	}
	choices(root, "output", []string{"table", "json"})
}

// assignments are KEY= for each key.
func assignments(keys []string) (all []string) {
	for _, key := range keys {
		all = append(all, key+"=")
	}
	return all
}

// commands are all commands of the tree.
func commands(cmd *cobra.Command) func(yield func(*cobra.Command) bool) {
	var walk func(cmd *cobra.Command, yield func(*cobra.Command) bool) bool
	walk = func(cmd *cobra.Command, yield func(*cobra.Command) bool) bool {
		return yield(cmd) && !slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return !walk(sub, yield) })
	}
	return func(yield func(*cobra.Command) bool) { walk(cmd, yield) }
}

// word completes the argument at index i, and no other.
func word(i int, words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == i {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// choices completes a flag where the command has it.
func choices(cmd *cobra.Command, flag string, words []string) {
	if cmd.Flag(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails only where there is no such flag
	}
}
