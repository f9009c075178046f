// Package class names the four priority classes of downloads (D-4.1).
package class

import "github.com/roadstead/roadstead/internal/fault"

// Class is a priority class; a smaller value is a higher class.
type Class uint8

// The classes, highest first.
const (
	Interactive Class = iota // people at the console or the CLI
	Release                  // CI and deployments
	Bulk                     // mass updates
	Background               // mirrors and other work nobody waits for
)

// Count is the number of classes.
const Count = 4

// names lists the class names, highest first.
var names = [Count]string{"interactive", "release", "bulk", "background"}

// String is the wire name.
func (c Class) String() string {
	if c < Count {
		return names[c]
	}
	return "unknown"
}

// All lists the classes, highest first.
func All() [Count]Class { return [Count]Class{Interactive, Release, Bulk, Background} }

// Parse reads a wire name; field names the input in the error (D-4.3).
func Parse(field, s string) (Class, error) {
	for i, n := range names {
		if n == s {
			return Class(i), nil
		}
	}
	return 0, fault.Invalid(field, "must be one of interactive, release, bulk, background")
}

// Applied clamps the class a client asks for to its ceiling: a client may lower its class, never raise it (D-4.3).
func Applied(asked, ceiling Class) Class { return max(asked, ceiling) }
