// Package app puts the server together: configuration, its parts, and their life from Open to Close.
package app
