package identity

import (
	"context"

	"github.com/roadstead/roadstead/internal/fault"
)

// Grant gives an account a role on a repository.
type Grant struct {
	Repository string // name
	Account    string // id
	Role       Role
}

// RoleOn is the caller's role on the repository. One without a role is told that there is no such repository; an
// operator is Admin on every one. A link has no role anywhere: it holds its one file by itself.
func (d *Directory) RoleOn(ctx context.Context, p Principal, repository string) (Role, error) {
	role, _, err := d.roleAndTenant(ctx, p, repository)
	return role, err
}

func (d *Directory) roleAndTenant(ctx context.Context, p Principal, repository string) (Role, string, error) {
	if p.Kind == Link || p.ID == "" {
		return "", "", fault.Missing("repository")
	}
	role, tenant, err := d.store.Role(ctx, p.ID, repository)
	if err != nil {
		return "", "", err
	}
	if p.Operator {
		return Admin, tenant, nil
	}
	if rank(role) == 0 || tenant != p.Tenant {
		return "", "", fault.Missing("repository")
	}
	return role, tenant, nil
}

// Need is fault not_found when p can't see the repository, forbidden when it sees it with a lower role than need.
func (d *Directory) Need(ctx context.Context, p Principal, repository string, need Role) error {
	_, err := d.need(ctx, p, repository, need)
	return err
}

func (d *Directory) need(ctx context.Context, p Principal, repository string, need Role) (tenant string, err error) {
	role, tenant, err := d.roleAndTenant(ctx, p, repository)
	if err != nil {
		return "", err
	}
	if !role.Allows(need) {
		return "", fault.New(fault.Forbidden, "this needs the role %s on repository %s; yours is %s", need, repository, role)
	}
	return tenant, nil
}

// SetGrant gives an account of the repository's tenant exactly this role. It needs Admin on the repository.
func (d *Directory) SetGrant(ctx context.Context, actor Principal, g Grant) error {
	tenant, err := d.need(ctx, actor, g.Repository, Admin)
	if err != nil {
		return err
	}
	if rank(g.Role) == 0 {
		return fault.Invalid("role", "must be read, write or admin")
	}
	return d.store.SetGrant(ctx, g, d.entry(actor, tenant, "grant.set", g.Repository, g.Account+" "+string(g.Role)))
}

// RemoveGrant takes an account's role on a repository away. It needs Admin on the repository.
func (d *Directory) RemoveGrant(ctx context.Context, actor Principal, repository, account string) error {
	tenant, err := d.need(ctx, actor, repository, Admin)
	if err != nil {
		return err
	}
	return d.store.RemoveGrant(ctx, repository, account, d.entry(actor, tenant, "grant.removed", repository, account))
}

// ListGrants lists who has which role on a repository, by account id past after. It needs Admin on the repository.
func (d *Directory) ListGrants(ctx context.Context, actor Principal, repository, after string, limit int) (page []Grant, next string, err error) {
	if err := d.Need(ctx, actor, repository, Admin); err != nil {
		return nil, "", err
	}
	limit = PageSize(limit)
	page, err = d.store.ListGrants(ctx, repository, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Account
	}
	return page, next, nil
}
