// Package runs is a tenant's side of Runs: submit, look, follow, cancel, run again.
package runs
