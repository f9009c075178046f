package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"time"

	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
)

// Key is an API key without its secret, which exists only in the answer that made it.
type Key struct {
	ID        string // part of the secret's text; says which row to compare with
	Account   string
	Name      string // for people
	Hash      string // hex SHA-256 of the secret's random part
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: not revoked
	LastUsed  time.Time // zero: never; up to a minute late
}

// An API key reads rsk_<id><secret>: both are of the base32 alphabet that crypto/rand.Text uses, of fixed length. The
// prefix lets scanners of leaked secrets recognise it.
const (
	keyPrefix    = "rsk_"
	keyIDLen     = 16
	keySecretLen = 52 // 260 random bits
	maxKeyName   = 100
)

// newKey makes a key and the text to hand out once.
func (d *Directory) newKey(account, name string, expires time.Time) (Key, string) {
	id := rand.Text()[:keyIDLen]
	secret := rand.Text() + rand.Text()
	k := Key{ID: id, Account: account, Name: name, Hash: hashSecret(secret), CreatedAt: d.now()}
	if !expires.IsZero() {
		k.ExpiresAt = expires.UTC().Truncate(time.Millisecond)
	}
	return k, keyPrefix + id + secret
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// parseKey takes a key's text apart; it looks at the form only.
func parseKey(text string) (id, secret string, ok bool) {
	rest, found := strings.CutPrefix(text, keyPrefix)
	if !found || len(rest) != keyIDLen+keySecretLen {
		return "", "", false
	}
	for _, c := range []byte(rest) {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return "", "", false
		}
	}
	return rest[:keyIDLen], rest[keyIDLen:], true
}

// Authenticate finds who holds the key. A key that is malformed, unknown, expired, revoked or of a disabled account
// is fault unauthorized, all in the same words.
func (d *Directory) Authenticate(ctx context.Context, text string) (Principal, error) {
	refused := fault.New(fault.Unauthorized, "the API key is missing, wrong, expired or revoked")
	id, secret, ok := parseKey(text)
	if !ok {
		return Principal{}, refused
	}
	k, a, err := d.store.Key(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Principal{}, refused
	}
	if err != nil {
		return Principal{}, err
	}
	now := d.now()
	same := subtle.ConstantTimeCompare([]byte(k.Hash), []byte(hashSecret(secret))) == 1
	if !same || !k.RevokedAt.IsZero() || a.Disabled || !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		return Principal{}, refused
	}
	d.mu.Lock()
	d.used[id] = now
	d.mu.Unlock()
	return a.Principal(), nil
}

// PrincipalOf is the account as it may act now, for what the server does in its name; fault unauthorized when it is disabled.
func (d *Directory) PrincipalOf(ctx context.Context, account string) (Principal, error) {
	a, err := d.store.Account(ctx, account)
	if err != nil {
		return Principal{}, err
	}
	if a.Disabled {
		return Principal{}, fault.New(fault.Unauthorized, "account %s is disabled", a.Name)
	}
	return a.Principal(), nil
}

// Bootstrap gives an empty store its first tenant "default", the operator "operator" and an API key. deliver gets the
// key's text before anything is committed: if it can't keep it, nothing is stored, so no start can leave an
// installation that nobody can sign in to. On a store that isn't empty nothing happens.
func (d *Directory) Bootstrap(ctx context.Context, deliver func(secret string) error) (created bool, err error) {
	now := d.now()
	t := Tenant{ID: d.newID(), Name: "default", CreatedAt: now}
	a := Account{
		ID: d.newID(), Kind: User, Tenant: t.ID, Name: "operator", Class: class.Interactive, Operator: true,
		Revision: 1, CreatedAt: now,
	}
	k, text := d.newKey(a.ID, "first key", time.Time{})
	first := First{Tenant: t, Account: a, Key: k, Entry: d.entry(Principal{}, t.ID, "store.bootstrapped", a.ID, "")}
	return d.store.Bootstrap(ctx, first, func() error { return deliver(text) })
}

// CreateKey makes a key for an account and returns its text, which is never shown again. People make keys for
// themselves, operators for anybody. Expires zero means never.
func (d *Directory) CreateKey(ctx context.Context, actor Principal, account, name string, expires time.Time) (Key, string, error) {
	a, err := d.keysOf(ctx, actor, account)
	if err != nil {
		return Key{}, "", err
	}
	if !actor.Operator && actor.Kind != User {
		return Key{}, "", fault.New(fault.Forbidden, "a service account can't make keys; an operator can")
	}
	if name == "" || len(name) > maxKeyName || strings.ContainsFunc(name, isControl) {
		return Key{}, "", fault.Invalid("name", "must be 1 to %d bytes without control characters", maxKeyName)
	}
	if !expires.IsZero() && !expires.After(d.now()) {
		return Key{}, "", fault.Invalid("expiresAt", "must lie in the future")
	}
	k, text := d.newKey(a.ID, name, expires)
	if err := d.store.CreateKey(ctx, k, d.entry(actor, a.Tenant, "key.created", k.ID, name)); err != nil {
		return Key{}, "", err
	}
	return k, text, nil
}

// ListKeys lists an account's keys, newest first. Everybody sees the own, operators all.
func (d *Directory) ListKeys(ctx context.Context, actor Principal, account string) ([]Key, error) {
	if _, err := d.keysOf(ctx, actor, account); err != nil {
		return nil, err
	}
	return d.store.ListKeys(ctx, account)
}

// RevokeKey ends a key at once and for good. Revoking it again changes nothing.
func (d *Directory) RevokeKey(ctx context.Context, actor Principal, id string) error {
	_, a, err := d.store.Key(ctx, id)
	if err != nil {
		return err
	}
	if !actor.Operator && a.ID != actor.ID {
		return fault.Missing("key")
	}
	return d.store.RevokeKey(ctx, id, d.now(), d.entry(actor, a.Tenant, "key.revoked", id, ""))
}

// keysOf finds the account whose keys actor wants to handle.
func (d *Directory) keysOf(ctx context.Context, actor Principal, account string) (Account, error) {
	if !actor.Operator && account != actor.ID {
		return Account{}, fault.Missing("account")
	}
	return d.store.Account(ctx, account)
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
