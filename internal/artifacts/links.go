package artifacts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// ShareLink lets whoever has its token read one revision of one file, as long as the path isn't deleted.
type ShareLink struct {
	ID         string
	Hash       string // hex SHA-256 of the token
	Repository string
	Path       string
	Revision   int64
	CreatedAt  time.Time
	CreatedBy  string
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
}

// LinkRecords keeps share links.
type LinkRecords interface {
	CreateLink(ctx context.Context, l ShareLink, e audit.Entry) error
	// LinkByHash finds a link, the tenant of its repository and its file; not_found too when the path is deleted.
	LinkByHash(ctx context.Context, hash string) (l ShareLink, tenant string, f File, err error)
	// ListLinks lists a repository's links by id past after, revoked and expired ones included.
	ListLinks(ctx context.Context, repository, after string, limit int) ([]ShareLink, error)
	// RevokeLink marks a link of the repository revoked; one that is already stays as it is, without an entry.
	RevokeLink(ctx context.Context, repository, id string, at time.Time, e audit.Entry) error
}

const tokenBytes = 32

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CreateLink shares the current revision of a path until expires (zero: without end). The token is in this answer
// only. It needs Write: a link hands a file to people without an account.
func (s *Service) CreateLink(ctx context.Context, p identity.Principal, repository, path string, expires time.Time) (l ShareLink, token string, err error) {
	if err := CheckPath("path", path); err != nil {
		return ShareLink{}, "", err
	}
	if err := s.access.Need(ctx, p, repository, identity.Write); err != nil {
		return ShareLink{}, "", err
	}
	now := s.now()
	if !expires.IsZero() {
		if expires = expires.UTC().Truncate(time.Millisecond); !expires.After(now) {
			return ShareLink{}, "", fault.Invalid("expiresAt", "must lie in the future")
		}
	}
	f, err := s.records.File(ctx, repository, path)
	if err != nil {
		return ShareLink{}, "", err
	}
	raw := make([]byte, tokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return ShareLink{}, "", fault.Wrap(fault.Internal, err, "making a token")
	}
	token = base64.RawURLEncoding.EncodeToString(raw)
	l = ShareLink{
		ID: s.cfg.NewID(), Hash: hashToken(token), Repository: repository, Path: path, Revision: f.Revision,
		CreatedAt: now, CreatedBy: p.ID, ExpiresAt: expires,
	}
	err = s.records.CreateLink(ctx, l, s.entry(p, "link.created", l.ID, repository+"/"+path))
	return l, token, err
}

// ListLinks lists a repository's links by id past after; next is empty on the last page. It needs Write.
func (s *Service) ListLinks(ctx context.Context, p identity.Principal, repository, after string, limit int) (page []ShareLink, next string, err error) {
	if err := s.access.Need(ctx, p, repository, identity.Write); err != nil {
		return nil, "", err
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListLinks(ctx, repository, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

// RevokeLink ends a link for good. Revoking it again changes nothing. It needs Write.
func (s *Service) RevokeLink(ctx context.Context, p identity.Principal, repository, id string) error {
	if err := s.access.Need(ctx, p, repository, identity.Write); err != nil {
		return err
	}
	return s.records.RevokeLink(ctx, repository, id, s.now(), s.entry(p, "link.revoked", id, repository))
}

// ResolveLink finds the file of a token, and the link as a principal: it is a caller of its own, not its maker, and
// release at most (D-4.1). A malformed, unknown, expired or revoked token is not found, all in the same words.
func (s *Service) ResolveLink(ctx context.Context, token string) (identity.Principal, File, error) {
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(token); err != nil || len(raw) != tokenBytes {
		return identity.Principal{}, File{}, fault.Missing("link")
	}
	// The lookup is by the hash: its timing says nothing of the token.
	l, tenant, f, err := s.records.LinkByHash(ctx, hashToken(token))
	if err != nil {
		return identity.Principal{}, File{}, err
	}
	if !l.RevokedAt.IsZero() || !l.ExpiresAt.IsZero() && !s.now().Before(l.ExpiresAt) {
		return identity.Principal{}, File{}, fault.Missing("link")
	}
	p := identity.Principal{ID: "link:" + l.ID, Kind: identity.Link, Tenant: tenant, Name: "link " + l.ID, Ceiling: class.Release}
	return p, f, nil
}
