package sdk

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/roadstead/roadstead/api"
)

// Keys lists the caller's API keys, or those of another account when account is set; never their secrets.
func (c *Client) Keys(ctx context.Context, account string) ([]api.Key, error) {
	query := url.Values{}
	if account != "" {
		query.Set("account", account)
	}
	var page api.Page[api.Key] // an account has few: there is only one
	err := c.call(ctx, http.MethodGet, c.at(apiRoot+"keys", query), nil, &page)
	return page.Items, err
}

// CreateKey makes an API key; its secret is only in this answer. Empty account: the caller's own. Zero expires: never.
func (c *Client) CreateKey(ctx context.Context, account, name string, expires time.Duration) (out api.Key, err error) {
	in := api.NewKey{Account: account, Name: name, ExpiresAt: c.expiry(expires)}
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"keys", nil), in, &out)
	return out, err
}

// RevokeKey ends an API key.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, c.at(apiRoot+"keys/"+url.PathEscape(id), nil), nil, nil)
}

// Tenants lists the tenants (operators only).
func (c *Client) Tenants(ctx context.Context) iter.Seq2[api.Tenant, error] {
	return pages[api.Tenant](ctx, c, "tenants", nil)
}

// CreateTenant makes a tenant (operators only).
func (c *Client) CreateTenant(ctx context.Context, name string) (out api.Tenant, err error) {
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"tenants", nil), api.NewTenant{Name: name}, &out)
	return out, err
}

// Users lists the people of a tenant; empty: the caller's own.
func (c *Client) Users(ctx context.Context, tenant string) iter.Seq2[api.Account, error] {
	return pages[api.Account](ctx, c, "users", inTenant(tenant))
}

// ServiceAccounts lists the service accounts of a tenant; empty: the caller's own.
func (c *Client) ServiceAccounts(ctx context.Context, tenant string) iter.Seq2[api.Account, error] {
	return pages[api.Account](ctx, c, "service-accounts", inTenant(tenant))
}

func inTenant(tenant string) url.Values {
	if tenant == "" {
		return nil
	}
	return url.Values{"tenant": {tenant}}
}

// CreateUser makes a person's account.
func (c *Client) CreateUser(ctx context.Context, in api.NewAccount) (out api.Account, err error) {
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"users", nil), in, &out)
	return out, err
}

// CreateServiceAccount makes an account for machines.
func (c *Client) CreateServiceAccount(ctx context.Context, in api.NewAccount) (out api.Account, err error) {
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"service-accounts", nil), in, &out)
	return out, err
}

// SetTenantRole makes an account an admin of its tenant, or a member again, if its policy still has the expected
// revision (operators only).
func (c *Client) SetTenantRole(ctx context.Context, account api.Account, role string) (out api.Account, err error) {
	in := api.AccountChange{ExpectedRevision: account.Revision, Role: &role}
	path := "users/"
	if account.Kind == "service" {
		path = "service-accounts/"
	}
	err = c.call(ctx, http.MethodPatch, c.at(apiRoot+path+url.PathEscape(account.ID), nil), in, &out)
	return out, err
}

// SetClass changes a service account's class if its policy still has the expected revision; otherwise the error's
// Code is revision_mismatch (D-4.3).
func (c *Client) SetClass(ctx context.Context, id, class string, expectedRevision int64) (out api.Account, err error) {
	in := api.AccountChange{ExpectedRevision: expectedRevision, Class: &class}
	err = c.call(ctx, http.MethodPatch, c.at(apiRoot+"service-accounts/"+url.PathEscape(id), nil), in, &out)
	return out, err
}
