// Package audit names the record of who changed what.
package audit

import "time"

// Entry is one line of the audit. It is written in the transaction of the change it tells of, so there is neither a
// change without its line nor a line without its change.
type Entry struct {
	ID     string
	At     time.Time
	Tenant string // tenant of the thing changed
	Actor  string // account id of who did it; empty when the server itself did
	Action string // a word and a verb, for example "account.changed"
	Target string // id or name of the thing changed
	Detail string // what changed, for people; never a secret
}
