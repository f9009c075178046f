package artifacts

import (
	"context"
	"regexp"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// Repository holds files. Its name is unique over all tenants, since URLs carry no tenant.
type Repository struct {
	ID        string
	Name      string
	Tenant    string
	Role      identity.Role // the caller's
	CreatedAt time.Time
}

// RepositoryRecords keeps repositories.
type RepositoryRecords interface {
	// CreateRepository stores the repository with its maker as Admin; already_exists if the name is taken.
	CreateRepository(ctx context.Context, r Repository, maker string, e audit.Entry) error
	// Repository finds one by name, with the account's own role in it (empty without a grant).
	Repository(ctx context.Context, name, account string) (Repository, error)
	// ListRepositories lists by name past after those on which the account has a grant, or all of them.
	ListRepositories(ctx context.Context, account string, all bool, after string, limit int) ([]Repository, error)
	// DeleteRepository removes a repository without live files, with its revisions, grants and links; conflict if
	// there are files.
	DeleteRepository(ctx context.Context, name string, e audit.Entry) error
}

var repositoryName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// CheckRepositoryName refuses a repository name that is not of the allowed form.
func CheckRepositoryName(field, s string) error {
	if !repositoryName.MatchString(s) {
		return fault.Invalid(field, "must be 1 to 128 of a-z 0-9 . _ -, beginning with a letter or digit")
	}
	return nil
}

// CreateRepository makes a repository in the caller's tenant, with the caller as Admin. People and operators only.
func (s *Service) CreateRepository(ctx context.Context, p identity.Principal, name string) (Repository, error) {
	if p.Kind != identity.User {
		return Repository{}, fault.New(fault.Forbidden, "only people can make repositories; let a user make it and grant you a role")
	}
	if err := CheckRepositoryName("name", name); err != nil {
		return Repository{}, err
	}
	r := Repository{ID: s.cfg.NewID(), Name: name, Tenant: p.Tenant, Role: identity.Admin, CreatedAt: s.now()}
	return r, s.records.CreateRepository(ctx, r, p.ID, s.entry(p, "repository.created", name, ""))
}

// Repository finds a repository the caller has a role on.
func (s *Service) Repository(ctx context.Context, p identity.Principal, name string) (Repository, error) {
	role, err := s.access.RoleOn(ctx, p, name)
	if err != nil {
		return Repository{}, err
	}
	r, err := s.records.Repository(ctx, name, p.ID)
	r.Role = role
	return r, err
}

// ListRepositories lists by name, past after, the repositories the caller has a role on; an operator sees all. next
// is empty on the last page.
func (s *Service) ListRepositories(ctx context.Context, p identity.Principal, after string, limit int) (page []Repository, next string, err error) {
	if p.Kind == identity.Link {
		return nil, "", nil
	}
	limit = identity.PageSize(limit)
	page, err = s.records.ListRepositories(ctx, p.ID, p.Operator, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name
	}
	if p.Operator {
		for i := range page {
			page[i].Role = identity.Admin
		}
	}
	return page, next, nil
}

// DeleteRepository removes an empty repository; one with files is fault conflict. It needs Admin.
func (s *Service) DeleteRepository(ctx context.Context, p identity.Principal, name string) error {
	if err := s.access.Need(ctx, p, name, identity.Admin); err != nil {
		return err
	}
	return s.records.DeleteRepository(ctx, name, s.entry(p, "repository.deleted", name, ""))
}
