package sdk

import (
	"context"
	"encoding/base64"
	"iter"
	"net/http"
	"net/url"

	"github.com/roadstead/roadstead/api"
)

// Secrets lists a tenant's secrets, without their values; empty: the caller's own tenant.
func (c *Client) Secrets(ctx context.Context, tenant string) iter.Seq2[api.Secret, error] {
	return pages[api.Secret](ctx, c, "secrets", inTenant(tenant))
}

// CreateSecret makes a secret. Its value goes in and never comes out.
func (c *Client) CreateSecret(ctx context.Context, tenant, name string, value []byte, packages []string) (out api.Secret, err error) {
	in := api.NewSecret{Tenant: tenant, Name: name, Packages: packages, SecretValue: inBase64(value)}
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"secrets", nil), in, &out)
	return out, err
}

// RotateSecret gives a secret another value.
func (c *Client) RotateSecret(ctx context.Context, tenant, name string, value []byte) (out api.Secret, err error) {
	err = c.call(ctx, http.MethodPut, c.secretURL(tenant, name, "/value"), inBase64(value), &out)
	return out, err
}

// ScopeSecret says which packages get a secret; none: every Run of the tenant.
func (c *Client) ScopeSecret(ctx context.Context, tenant, name string, packages []string) (out api.Secret, err error) {
	in := api.SecretScope{Packages: append([]string{}, packages...)}
	err = c.call(ctx, http.MethodPut, c.secretURL(tenant, name, "/packages"), in, &out)
	return out, err
}

// DeleteSecret forgets a secret and every value it had.
func (c *Client) DeleteSecret(ctx context.Context, tenant, name string) error {
	return c.call(ctx, http.MethodDelete, c.secretURL(tenant, name, ""), nil, nil)
}

// RotateSecretsKey makes a new key and seals every secret anew under it, or only goes on with a rotation that was
// interrupted (operators only).
func (c *Client) RotateSecretsKey(ctx context.Context, resealOnly bool) (out api.SecretsKeyRotated, err error) {
	err = c.call(ctx, http.MethodPost, c.at(apiRoot+"system/secrets/rotate-key", nil), api.RotateSecretsKey{ResealOnly: resealOnly}, &out)
	return out, err
}

// inBase64 is a value as it travels: base64, so that any bytes do.
func inBase64(value []byte) api.SecretValue {
	return api.SecretValue{Value: base64.StdEncoding.EncodeToString(value), Base64: true}
}

func (c *Client) secretURL(tenant, name, rest string) string {
	return c.at(apiRoot+"secrets/"+url.PathEscape(name)+rest, inTenant(tenant))
}
