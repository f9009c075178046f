// Package sdk is the Go client of a Roadstead server: it waits its turn in the queue as long as the queue needs,
// resumes what broke, and hands over only bytes whose SHA-256 it has checked (D-1, D-2.3, D-5.1, D-8.5).
package sdk
